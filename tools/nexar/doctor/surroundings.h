// What the checks are about: this machine, and how nexar is to be used on it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/address.h"
#include "nexar/config.h"
#include "nexar/result.h"

namespace nexar::tool::doctor {

// The files in which the kernel tells about itself.
class System {
 public:
  explicit System(std::filesystem::path root = "/") : root_(std::move(root)) {}

  // A whole file; nothing when it cannot be read. `path` begins with a slash.
  std::optional<std::string> text(const std::string& path) const;
  std::optional<std::string> line(const std::string& path) const;      // its first line
  std::optional<std::uint64_t> number(const std::string& path) const;  // its first line, a whole number

 private:
  std::filesystem::path root_;
};

struct Surroundings {
  System system{};
  Config config{};
  int world = 16;                                                // ranks of the worlds that this host is to be part of
  std::string seed{};                                            // HOST:PORT; empty: only this host is looked at
  std::string port{};                                            // JoinOptions::port, which parse_ports() takes
  std::vector<std::string> interfaces{};                         // JoinOptions::interfaces
  std::chrono::nanoseconds patience = std::chrono::seconds(30);  // with the seed and the other ranks
};

// The interface that has an address; empty when none has.
std::string interface_of(const std::vector<io::InterfaceAddress>& present, const io::Address& address);

// The largest IP packet that an interface takes; nothing when the kernel does not tell.
std::optional<std::uint64_t> mtu_of(const System& system, const std::string& interface);

// PORT or FIRST-LAST; empty text: any. kInvalidArgument quotes what is neither.
struct Ports {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
};
Result<Ports> parse_ports(const std::string& text);

// What `open` makes at the first port of `ports` at which it succeeds; its last error when there is none.
template <typename Open>
auto open_in(const Ports& ports, const io::Address& address, Open open) {
  auto opened = open(address.with_port(ports.first));
  for (std::uint32_t next = ports.first + 1u; !opened && next <= ports.last; ++next)
    opened = open(address.with_port(static_cast<std::uint16_t>(next)));
  return opened;
}

}  // namespace nexar::tool::doctor
