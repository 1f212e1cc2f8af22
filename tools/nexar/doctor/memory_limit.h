// How much memory the control groups of this process leave it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "doctor/surroundings.h"

namespace nexar::tool::doctor {

struct MemoryLimit {
  std::string group;        // the directory under /sys/fs/cgroup of the group that limits most
  std::uint64_t limit = 0;  // bytes
  std::uint64_t used = 0;   // without what the kernel can drop at once
  std::uint64_t left() const { return limit > used ? limit - used : 0; }
};

// The tightest of the group of this process and all groups around it, of both versions of the kernel's interface; nothing when none limits.
std::optional<MemoryLimit> memory_limit(const System& system);

}  // namespace nexar::tool::doctor
