#include "doctor/memory_limit.h"

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <vector>

#include "base/units.h"

namespace nexar::tool::doctor {
namespace {

// Version 1 shows the largest number of pages as "no limit".
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;

struct Interface {
  std::string mount;  // where its groups are directories
  std::string limit;
  std::string usage;
  std::string droppable;  // a row of memory.stat
};

const Interface kVersion1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
const Interface kVersion2 = {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};
const Interface kVersion2BesideVersion1 = {"/sys/fs/cgroup/unified", "memory.max", "memory.current", "inactive_file"};

std::uint64_t row_of(const std::string& table, const std::string& name) {
  std::istringstream rows(table);
  std::string key;
  std::uint64_t value = 0;
  while (rows >> key >> value)
    if (key == name) return value;
  return 0;
}

std::optional<MemoryLimit> limit_of(const System& system, const Interface& files, const std::string& group) {
  const auto limit = system.number(group + "/" + files.limit);  // "max" is no number, and no limit
  if (!limit || *limit >= kNoLimit) return std::nullopt;
  const std::uint64_t usage = system.number(group + "/" + files.usage).value_or(0);
  const std::uint64_t droppable = row_of(system.text(group + "/memory.stat").value_or(""), files.droppable);
  return MemoryLimit{group, *limit, usage > droppable ? usage - droppable : 0};
}

// A line of /proc/self/cgroup is NUMBER:CONTROLLERS:PATH; version 2 has number 0 and no controllers.
struct Membership {
  std::string controllers;
  std::string path;
};

std::vector<Membership> memberships(const System& system) {
  std::vector<Membership> all;
  std::istringstream lines(system.text("/proc/self/cgroup").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second != std::string::npos) all.push_back({line.substr(first + 1, second - first - 1), line.substr(second + 1)});
  }
  return all;
}

}  // namespace

std::optional<MemoryLimit> memory_limit(const System& system) {
  std::optional<MemoryLimit> tightest;
  const auto walk_up = [&](const Interface& files, std::string path) {
    for (;;) {
      if (path == "/") path.clear();
      const auto found = limit_of(system, files, files.mount + path);
      if (found && (!tightest || found->left() < tightest->left())) tightest = found;
      if (path.empty()) return;
      path.resize(path.rfind('/'));
    }
  };
  for (const Membership& one : memberships(system)) {
    if (one.path.empty() || one.path[0] != '/') continue;
    if (one.controllers == "memory") walk_up(kVersion1, one.path);
    if (one.controllers.empty()) walk_up(kVersion2, one.path);
    if (one.controllers.empty()) walk_up(kVersion2BesideVersion1, one.path);
  }
  return tightest;
}

}  // namespace nexar::tool::doctor
