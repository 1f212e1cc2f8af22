// Work in another network namespace.
#pragma once

#include <functional>
#include <string>

#include "nexar/result.h"

namespace nexar::io {

// Runs `work` with the calling thread in the network namespace at `path` (/run/netns/NAME, or /proc/PID/ns/net), comes back, and returns
// what `work` returned. Sockets that it opens stay in that namespace. An empty path means here. Needs the right to change namespaces, as
// root has. If the thread cannot come back, the error says so: it must not be used for anything else then.
Result<void> in_network_namespace(const std::string& path, const std::function<Result<void>()>& work);

}  // namespace nexar::io
