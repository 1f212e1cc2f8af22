// HOST:PORT as people write it: `node7:7070`, `10.0.0.1:7070`, `[fd00::1]:7070`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "nexar/result.h"

namespace nexar::cluster {

struct HostPort {
  std::string host;  // a name or an address, without brackets
  std::uint16_t port = 0;
};

// kInvalidArgument, quoting the text, when it has no host or no port. Whether the name exists is another question.
Result<HostPort> parse_host_port(std::string_view text);

}  // namespace nexar::cluster
