// Where a socket is: an IP address and a port.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "nexar/result.h"

namespace nexar::io {

// An IPv4 or IPv6 endpoint, as a value.
//
// An IPv4 address in the clothes of IPv6 (::ffff:1.2.3.4), which is how a dual-stack socket shows it, becomes plain IPv4 on the way in: the
// same peer has one Address, whatever socket it came through. Sockets put the clothes on again.
class Address {
 public:
  enum class Family : std::uint8_t { kNone, kV4, kV6 };

  Address() = default;  // of family kNone: no address

  // `1.2.3.4:5`, `[::1]:5`, `[fe80::1%eth0]:5`. Names are for resolve().
  static Result<Address> parse(std::string_view text);

  // What the kernel or a library gave; kNone when it is neither IPv4 nor IPv6, or too short.
  static Address from(const sockaddr* address, socklen_t length);

  // From the bytes of ip(): four or sixteen; kNone for any other number.
  static Address from_ip(base::ByteView ip, std::uint16_t port);

  static Address any_v4(std::uint16_t port);
  static Address any_v6(std::uint16_t port);
  static Address loopback_v4(std::uint16_t port);
  static Address loopback_v6(std::uint16_t port);

  Family family() const;
  std::uint16_t port() const;
  Address with_port(std::uint16_t port) const;
  bool is_any() const;         // 0.0.0.0 or [::]
  bool is_loopback() const;    // 127.0.0.0/8 or [::1]
  bool is_link_local() const;  // 169.254.0.0/16 or fe80::/10: means something on one link only
  base::ByteView ip() const;   // the bytes of the IP address, in network order: four, sixteen, or none
  explicit operator bool() const { return family() != Family::kNone; }

  // For the kernel: the address as it is, and as a socket of family AF_INET6 takes it.
  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const;
  sockaddr_in6 as_v6() const;

  std::string host() const;       // without the port and without brackets
  std::string to_string() const;  // parse() takes it back; "none" for none

  friend bool operator==(const Address& a, const Address& b) { return (a <=> b) == std::strong_ordering::equal; }
  friend std::strong_ordering operator<=>(const Address& a, const Address& b);  // IPv4 first, then by address, then by port
  std::size_t hash() const;

 private:
  union Storage {
    sockaddr_in6 v6;  // the longest first, so that all of it starts as zero
    sockaddr_in v4;
  };

  std::string_view bytes() const;  // of the IP address, in network order

  Storage storage_{};
};

// The addresses of a host name, or of an IP address in text, in the order of preference of this host. Blocks while a name server is asked;
// the error names the host.
Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port);

// An address that this host has, with port 0.
struct InterfaceAddress {
  std::string name;  // of the interface
  Address address;
  bool is_up = false;
  bool is_loopback = false;
};

Result<std::vector<InterfaceAddress>> interface_addresses();

// The address of this host that packets to `to` come from, with port 0. Nothing is sent. kIo, naming `to`, when there is no way to it.
Result<Address> source_address(const Address& to);

}  // namespace nexar::io

template <>
struct std::hash<nexar::io::Address> {
  std::size_t operator()(const nexar::io::Address& address) const noexcept { return address.hash(); }
};
