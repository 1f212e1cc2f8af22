#include "doctor/surroundings.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/units.h"

namespace nexar::tool::doctor {

std::optional<std::string> System::text(const std::string& path) const {
  std::ifstream file(root_ / path.substr(1));
  if (!file) return std::nullopt;
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) return std::nullopt;
  return text;
}

std::optional<std::string> System::line(const std::string& path) const {
  std::optional<std::string> all = text(path);
  if (all) all->resize(std::min(all->find('\n'), all->size()));
  return all;
}

std::optional<std::uint64_t> System::number(const std::string& path) const {
  const std::optional<std::string> first = line(path);
  return first ? base::parse_number(*first) : std::nullopt;
}

std::string interface_of(const std::vector<io::InterfaceAddress>& present, const io::Address& address) {
  for (const io::InterfaceAddress& one : present)
    if (one.address == address.with_port(0)) return one.name;
  return {};
}

std::optional<std::uint64_t> mtu_of(const System& system, const std::string& interface) {
  return system.number(fmt::format("/sys/class/net/{}/mtu", interface));
}

Result<Ports> parse_ports(const std::string& text) {
  if (text.empty()) return Ports{};
  const std::size_t dash = text.find('-');
  const auto first = base::parse_number(std::string_view(text).substr(0, dash));
  const auto last = dash == std::string::npos ? first : base::parse_number(std::string_view(text).substr(dash + 1));
  if (!first || !last || *first == 0 || *last > 65535 || *first > *last)
    return Error(ErrorCode::kInvalidArgument, fmt::format("the port is \"{}\"; accepted is PORT or FIRST-LAST, from 1 to 65535", text));
  return Ports{static_cast<std::uint16_t>(*first), static_cast<std::uint16_t>(*last)};
}

}  // namespace nexar::tool::doctor
