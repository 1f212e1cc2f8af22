#include "io/address.h"

#include <array>
#include <cstring>

#include <arpa/inet.h>
#include <net/if.h>

#include <fmt/format.h>

#include "base/hash.h"
#include "base/units.h"

namespace nexar::io {
namespace {

Error not_an_address(std::string_view text) {
  return {ErrorCode::kInvalidArgument, fmt::format("'{}' is not an address: write 1.2.3.4:5 or [::1]:5", text)};
}

// The zone of a link-local address: the name of an interface or its number; 0 when there is no such thing.
std::uint32_t parse_zone(const std::string& zone) {
  if (const auto number = base::parse_number(zone); number && *number <= UINT32_MAX) return static_cast<std::uint32_t>(*number);
  return if_nametoindex(zone.c_str());
}

bool parse_v6(std::string_view text, sockaddr_in6& out) {
  const std::size_t percent = text.find('%');
  out.sin6_family = AF_INET6;
  if (percent != std::string_view::npos) {
    out.sin6_scope_id = parse_zone(std::string(text.substr(percent + 1)));
    if (out.sin6_scope_id == 0) return false;
  }
  return inet_pton(AF_INET6, std::string(text.substr(0, percent)).c_str(), &out.sin6_addr) == 1;
}

bool parse_v4(std::string_view text, sockaddr_in& out) {
  out.sin_family = AF_INET;
  return inet_pton(AF_INET, std::string(text).c_str(), &out.sin_addr) == 1;
}

template <typename T>
const sockaddr* generic(const T& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

}  // namespace

Result<Address> Address::parse(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return not_an_address(text);
  const std::string_view host = text.substr(0, colon);
  const auto port = base::parse_number(text.substr(colon + 1));
  if (!port || *port > UINT16_MAX) return not_an_address(text);

  Address address;
  if (host.starts_with('[') && host.ends_with(']')) {
    sockaddr_in6 v6{};
    if (!parse_v6(host.substr(1, host.size() - 2), v6)) return not_an_address(text);
    address = from(generic(v6), sizeof v6);
  } else {
    sockaddr_in v4{};
    if (!parse_v4(host, v4)) return not_an_address(text);
    address = from(generic(v4), sizeof v4);
  }
  return address.with_port(static_cast<std::uint16_t>(*port));
}

Address Address::from(const sockaddr* given, socklen_t length) {
  Address address;
  if (given == nullptr || length < sizeof(sa_family_t)) return address;
  if (given->sa_family == AF_INET && length >= sizeof(sockaddr_in)) {
    sockaddr_in v4;
    std::memcpy(&v4, given, sizeof v4);
    address.storage_.v4 = {.sin_family = AF_INET, .sin_port = v4.sin_port, .sin_addr = v4.sin_addr, .sin_zero = {}};
  } else if (given->sa_family == AF_INET6 && length >= sizeof(sockaddr_in6)) {
    sockaddr_in6 v6;
    std::memcpy(&v6, given, sizeof v6);
    v6.sin6_flowinfo = 0;  // not part of where a peer is
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      address.storage_.v4 = {.sin_family = AF_INET, .sin_port = v6.sin6_port, .sin_addr = {}, .sin_zero = {}};
      std::memcpy(&address.storage_.v4.sin_addr, v6.sin6_addr.s6_addr + 12, 4);
    } else {
      address.storage_.v6 = v6;
    }
  }
  return address;
}

Address Address::from_ip(base::ByteView ip, std::uint16_t port) {
  if (ip.size() == sizeof(in_addr)) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    std::memcpy(&v4.sin_addr, ip.data(), ip.size());
    return from(generic(v4), sizeof v4).with_port(port);
  }
  if (ip.size() != sizeof(in6_addr)) return {};
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  std::memcpy(&v6.sin6_addr, ip.data(), ip.size());
  return from(generic(v6), sizeof v6).with_port(port);
}

Address Address::any_v4(std::uint16_t port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  return from(generic(v4), sizeof v4).with_port(port);
}

Address Address::any_v6(std::uint16_t port) {
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  return from(generic(v6), sizeof v6).with_port(port);
}

Address Address::loopback_v4(std::uint16_t port) {
  Address address = any_v4(port);
  address.storage_.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

Address Address::loopback_v6(std::uint16_t port) {
  Address address = any_v6(port);
  address.storage_.v6.sin6_addr = in6addr_loopback;
  return address;
}

Address::Family Address::family() const {
  switch (data()->sa_family) {
    case AF_INET: return Family::kV4;
    case AF_INET6: return Family::kV6;
    default: return Family::kNone;
  }
}

// The port lies at the same place in both structures.
static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));

std::uint16_t Address::port() const { return ntohs(storage_.v4.sin_port); }

Address Address::with_port(std::uint16_t port) const {
  Address copy = *this;
  copy.storage_.v4.sin_port = htons(port);
  return copy;
}

bool Address::is_any() const { return *this && bytes().find_first_not_of('\0') == std::string_view::npos; }

bool Address::is_loopback() const {
  if (family() == Family::kV4) return bytes().front() == 127;
  return family() == Family::kV6 && IN6_IS_ADDR_LOOPBACK(&storage_.v6.sin6_addr);
}

bool Address::is_link_local() const {
  if (family() == Family::kV4) return bytes().starts_with("\xa9\xfe");
  return family() == Family::kV6 && IN6_IS_ADDR_LINKLOCAL(&storage_.v6.sin6_addr);
}

base::ByteView Address::ip() const { return std::as_bytes(std::span(bytes())); }

socklen_t Address::size() const {
  switch (family()) {
    case Family::kV4: return sizeof(sockaddr_in);
    case Family::kV6: return sizeof(sockaddr_in6);
    case Family::kNone: return 0;
  }
  return 0;
}

sockaddr_in6 Address::as_v6() const {
  if (family() != Family::kV4) return storage_.v6;
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = storage_.v4.sin_port;
  v6.sin6_addr.s6_addr[10] = v6.sin6_addr.s6_addr[11] = 0xff;
  std::memcpy(v6.sin6_addr.s6_addr + 12, &storage_.v4.sin_addr, 4);
  return v6;
}

std::string_view Address::bytes() const {
  switch (family()) {
    case Family::kV4: return {reinterpret_cast<const char*>(&storage_.v4.sin_addr), sizeof(in_addr)};
    case Family::kV6: return {reinterpret_cast<const char*>(&storage_.v6.sin6_addr), sizeof(in6_addr)};
    case Family::kNone: return {};
  }
  return {};
}

std::string Address::host() const {
  if (!*this) return "none";
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(data()->sa_family, bytes().data(), text.data(), text.size());
  const std::uint32_t zone = family() == Family::kV6 ? storage_.v6.sin6_scope_id : 0;
  if (zone == 0) return text.data();
  std::array<char, IF_NAMESIZE> name{};  // the number, when the interface has gone
  return fmt::format("{}%{}", text.data(), if_indextoname(zone, name.data()) != nullptr ? name.data() : std::to_string(zone).c_str());
}

std::string Address::to_string() const {
  switch (family()) {
    case Family::kV4: return fmt::format("{}:{}", host(), port());
    case Family::kV6: return fmt::format("[{}]:{}", host(), port());
    case Family::kNone: return "none";
  }
  return "none";
}

std::strong_ordering operator<=>(const Address& a, const Address& b) {
  if (const auto order = a.family() <=> b.family(); std::is_neq(order)) return order;
  if (const int order = a.bytes().compare(b.bytes()); order != 0) return order <=> 0;
  if (const auto order = a.port() <=> b.port(); std::is_neq(order)) return order;
  if (a.family() != Address::Family::kV6) return std::strong_ordering::equal;
  return a.storage_.v6.sin6_scope_id <=> b.storage_.v6.sin6_scope_id;
}

std::size_t Address::hash() const { return base::hash64(bytes()) * 31 + port(); }

}  // namespace nexar::io
