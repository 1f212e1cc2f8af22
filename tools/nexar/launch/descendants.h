// Which processes there are: those that descend from this one, and those of a group.
#pragma once

#include <chrono>
#include <vector>

#include <sys/types.h>

namespace nexar::launch {

// Makes this process the parent of descendants whose own parents end, so that they can be found and reaped.
void adopt_orphans();

// All of them, except `spared` and what descends from those.
std::vector<pid_t> descendants(const std::vector<pid_t>& spared);

// Whether a process group has a member that has not ended. One that has ended and is not reaped yet, perhaps never, does not count.
bool has_living_member(pid_t group);

// Kills and reaps them all, the spared aside; gives up on what the kernel does not let die within `limit`.
void end_descendants(const std::vector<pid_t>& spared, std::chrono::milliseconds limit);

}  // namespace nexar::launch
