#include "launch/binding.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include <fmt/format.h>

#include "base/assert.h"

namespace nexar::launch {
namespace {

using Topology = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;
using Bitmap = std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)>;

Error unknown(std::string_view why) { return {ErrorCode::kUnsupported, fmt::format("cannot share out the cores: {}", why)}; }

Error refused(const char* what) { return unknown(fmt::format("{}: {}", what, std::strerror(errno))); }

Bitmap make_bitmap() {
  Bitmap set(hwloc_bitmap_alloc(), hwloc_bitmap_free);
  NEXAR_ASSERT(set != nullptr, "there is memory for a few bytes");
  return set;
}

}  // namespace

// hwloc numbers cores so that near ones follow each other. hwloc_distrib() would give each half of a machine to as many ranks as the other,
// so that of three ranks one had a socket and two shared the other; and more ranks to cores of two threads than to others.
Result<std::vector<Cores>> share_cores(hwloc_topology_t topology, int ranks) {
  const int depth = hwloc_get_type_or_below_depth(topology, HWLOC_OBJ_CORE);
  std::vector<hwloc_obj_t> cores;
  for (hwloc_obj_t core = nullptr; (core = hwloc_get_next_obj_by_depth(topology, depth, core)) != nullptr;) cores.push_back(core);
  if (cores.empty()) return unknown("hwloc sees none");

  std::vector<Cores> shares;
  const auto count = static_cast<std::size_t>(ranks);
  for (std::size_t rank = 0; rank < count; ++rank) {
    const std::size_t first = rank * cores.size() / count;
    const std::size_t end = std::max((rank + 1) * cores.size() / count, first + 1);
    const Bitmap set = make_bitmap();
    for (std::size_t i = first; i < end; ++i) hwloc_bitmap_or(set.get(), set.get(), cores[i]->cpuset);
    Cores& share = shares.emplace_back();
    for (int core = hwloc_bitmap_first(set.get()); core >= 0; core = hwloc_bitmap_next(set.get(), core)) share.push_back(core);
  }
  return shares;
}

Result<std::vector<Cores>> share_cores_here(int ranks) {
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) return refused("hwloc cannot start");
  const Topology topology(made, hwloc_topology_destroy);
  if (hwloc_topology_load(made) != 0) return refused("hwloc cannot say what this host consists of");
  const Bitmap own = make_bitmap();
  if (hwloc_get_cpubind(made, own.get(), HWLOC_CPUBIND_THREAD) != 0) return refused("hwloc cannot say which cores may be used");
  if (hwloc_topology_restrict(made, own.get(), 0) != 0) return refused("hwloc does not know the cores that may be used");
  return share_cores(made, ranks);
}

std::string to_string(const Cores& cores) {
  std::string text;
  for (std::size_t first = 0; first < cores.size();) {
    std::size_t last = first;
    while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cores[first]);
    if (last > first) text += fmt::format("-{}", cores[last]);
    first = last + 1;
  }
  return text;
}

}  // namespace nexar::launch
