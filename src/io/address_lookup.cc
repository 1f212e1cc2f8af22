// The two questions about addresses that are answered outside this process: what a name means, and what this host is called.
#include <algorithm>
#include <cerrno>
#include <memory>

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <fmt/format.h>

#include "io/address.h"
#include "io/file_descriptor.h"
#include "io/kernel_error.h"

namespace nexar::io {

Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port) {
  const addrinfo hints{.ai_flags = 0,
                       .ai_family = AF_UNSPEC,
                       .ai_socktype = SOCK_DGRAM,
                       .ai_protocol = 0,
                       .ai_addrlen = 0,
                       .ai_addr = nullptr,
                       .ai_canonname = nullptr,
                       .ai_next = nullptr};
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (code == EAI_SYSTEM) return kernel_error(fmt::format("cannot resolve host '{}'", host), errno);
  if (code != 0) return Error(ErrorCode::kIo, fmt::format("cannot resolve host '{}': {}", host, gai_strerror(code)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);

  std::vector<Address> addresses;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    const Address address = Address::from(entry->ai_addr, entry->ai_addrlen).with_port(port);
    if (address && std::find(addresses.begin(), addresses.end(), address) == addresses.end()) addresses.push_back(address);
  }
  if (addresses.empty()) return Error(ErrorCode::kIo, fmt::format("host '{}' has neither an IPv4 nor an IPv6 address", host));
  return addresses;
}

Result<std::vector<InterfaceAddress>> interface_addresses() {
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0) return kernel_error("cannot list the addresses of this host", errno);
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(found, freeifaddrs);

  std::vector<InterfaceAddress> addresses;
  for (const ifaddrs* entry = found; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const Address address =
        Address::from(entry->ifa_addr, entry->ifa_addr->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
    if (!address) continue;  // of another family, as packet sockets are
    addresses.push_back({entry->ifa_name, address, (entry->ifa_flags & IFF_UP) != 0, (entry->ifa_flags & IFF_LOOPBACK) != 0});
  }
  return addresses;
}

Result<Address> source_address(const Address& to) {
  const auto failed = [&] { return kernel_error(fmt::format("there is no way to {}", to.to_string()), errno); };
  const FileDescriptor fd(::socket(to.data()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd || ::connect(fd.get(), to.data(), to.size()) != 0) return failed();
  sockaddr_in6 own{};
  socklen_t size = sizeof own;
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) return failed();
  return Address::from(reinterpret_cast<const sockaddr*>(&own), size).with_port(0);
}

}  // namespace nexar::io
