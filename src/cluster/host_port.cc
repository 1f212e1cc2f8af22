#include "cluster/host_port.h"

#include <fmt/format.h>

#include "base/units.h"

namespace nexar::cluster {

Result<HostPort> parse_host_port(std::string_view text) {
  const Error wrong(ErrorCode::kInvalidArgument, fmt::format("'{}' is no address: write HOST:PORT or [IPV6]:PORT", text));
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos) return wrong;
  std::string_view host = text.substr(0, colon);
  const auto port = base::parse_number(text.substr(colon + 1));
  if (!port || *port > UINT16_MAX) return wrong;
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || (host.find(':') != host.npos) != bracketed || host.find_first_of("[] /") != host.npos) return wrong;
  return HostPort{std::string(host), static_cast<std::uint16_t>(*port)};
}

}  // namespace nexar::cluster
