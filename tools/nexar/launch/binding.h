// Which cores of its host each rank runs on when ranks are bound.
#pragma once

#include <string>
#include <vector>

#include <hwloc.h>

#include "nexar/result.h"

namespace nexar::launch {

// Cores by the kernel's numbers, ascending. Where a core runs several threads, each has a number, and they stay together.
using Cores = std::vector<int>;

// Shares a loaded topology among so many ranks of its host, in their order: whole cores next to each other, as many for each as for the
// others or one more, and none left over. Where ranks outnumber cores each has one, shared with its neighbours. kUnsupported when the
// topology has no cores.
Result<std::vector<Cores>> share_cores(hwloc_topology_t topology, int ranks);

// The same for this host, as far as the calling process may use it: taskset and containers are respected. kUnsupported says what is not
// known.
Result<std::vector<Cores>> share_cores_here(int ranks);

// As people write them: 0-3,8
std::string to_string(const Cores& cores);

}  // namespace nexar::launch
