// Which processes share a host, as far as memory can be shared.
#pragma once

#include <string_view>

#include "io/host.h"
#include "types/node_id.h"

namespace nexar::cluster {

// The same for processes with equal marks and equal `chosen` (what NEXAR_HOST_ID says, or nothing): a name can divide a host, and never
// makes one of two.
HostId host_id(const io::HostMarks& marks, std::string_view chosen);

// Of the calling thread. Where the kernel does not tell its boot id, nobody else is on this host.
HostId this_host(std::string_view chosen);

}  // namespace nexar::cluster
