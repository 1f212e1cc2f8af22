// Ranks of one host share a segment that is allocated in full at once. A control group that is too small for it does not refuse: the kernel
// kills. So the limit is read first, and the memory is asked for only where it fits.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/units.h"
#include "doctor/checks.h"
#include "doctor/memory_limit.h"
#include "io/file_descriptor.h"

namespace nexar::tool::doctor {
namespace {

// The kernel's own default since 5.16. Registered buffers of network cards and GPUs count against it.
constexpr rlim_t kLockedMin = rlim_t{8} << 20;

std::string mebibytes(std::uint64_t bytes) { return fmt::format("{} MiB", bytes >> 20); }

// What the segment of a host full of ranks takes.
std::uint64_t budget_of(const Surroundings& here) { return here.config.shm_budget_for(static_cast<std::uint32_t>(here.world)); }

Finding check_group(const Surroundings& here) {
  const char* name = "memory limit";
  const auto limit = memory_limit(here.system);
  if (!limit) return ok(name, "no control group limits this process");
  const std::uint64_t budget = budget_of(here);
  const std::string seen = fmt::format("{} leaves {} of {}; shared memory of {} ranks takes {}", limit->group, mebibytes(limit->left()),
                                       mebibytes(limit->limit), here.world, mebibytes(budget));
  const std::string remedy =
      fmt::format("raise the memory limit of the container or service (docker --memory, MemoryMax=) by {}, or set NEXAR_SHM_BUDGET={}",
                  mebibytes(2 * budget), base::format_size(std::max<std::uint64_t>(limit->left() / 4 >> 20, 1) << 20));
  if (limit->left() < budget) return wrong(name, seen + ": the kernel would kill the ranks", remedy);
  return limit->left() / 2 < budget ? warning(name, seen, remedy) : ok(name, seen);
}

Finding check_segment(const Surroundings& here) {
  const char* name = "shared memory";
  const std::uint64_t budget = budget_of(here);
  const auto limit = memory_limit(here.system);
  if (limit && limit->left() < budget) return warning(name, "not tried: it would not fit", "mend the memory limit first");
  const io::FileDescriptor segment(memfd_create("nexar-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!segment)
    return wrong(name, fmt::format("memfd_create: {}", std::strerror(errno)), "allow memfd_create in the sandbox of this process");
  if (fallocate(segment.get(), 0, 0, static_cast<off_t>(budget)) != 0)
    return wrong(name, fmt::format("{} cannot be allocated: {}", mebibytes(budget), std::strerror(errno)),
                 "free memory on this host, or set NEXAR_SHM_BUDGET to less");
  return ok(name, fmt::format("{} allocated and given back", mebibytes(budget)));
}

Finding check_locked() {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return ok("locked memory", "no limit");
  const std::string seen = fmt::format("{} KiB may be locked", limit.rlim_cur >> 10);
  if (limit.rlim_cur >= kLockedMin) return ok("locked memory", seen);
  return warning("locked memory", seen, "run `ulimit -l unlimited` before programs that register device or network memory");
}

}  // namespace

Findings check_memory(const Surroundings& here) { return {check_group(here), check_segment(here), check_locked()}; }

}  // namespace nexar::tool::doctor
