// Which of its addresses a node tells its peers, by the same rules as when it joins.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cluster/candidates.h"
#include "cluster/host_port.h"
#include "doctor/checks.h"

namespace nexar::tool::doctor {
namespace {

// QUIC needs packets of 1200 bytes and their headers; IPv6 asks for no less of any network.
constexpr std::uint64_t kMtuMin = 1280;

// The address that this host uses towards the seed; none when there is no seed or no way to it, which check_seed tells.
io::Address towards_seed(const Surroundings& here) {
  if (here.seed.empty()) return {};
  const auto place = cluster::parse_host_port(here.seed);
  if (!place) return {};
  const auto addresses = io::resolve(place->host, place->port);
  if (!addresses) return {};
  for (const io::Address& address : *addresses)
    if (const auto source = io::source_address(address)) return *source;
  return {};
}

Finding check_choice(const std::vector<io::InterfaceAddress>& present, const std::vector<io::Address>& chosen, const io::Address& towards) {
  const char* name = "interfaces";
  std::vector<std::string> told;
  for (const io::Address& address : chosen) told.push_back(fmt::format("{} ({})", address.host(), interface_of(present, address)));
  const std::string seen = fmt::format("peers are told {}", fmt::join(told, ", "));
  const bool loopback = std::ranges::all_of(chosen, [](const io::Address& address) { return address.is_loopback(); });
  const std::string way = interface_of(present, towards);
  if (!towards || way.empty()) {
    if (!loopback) return ok(name, seen);
    return warning(name, seen + ": only processes of this host can reach it",
                   "for worlds of several hosts, set NEXAR_INTERFACES to an interface with a network");
  }
  if (loopback && !towards.is_loopback())
    return wrong(name, fmt::format("{}, and the seed is on another host", seen),
                 fmt::format("no peer elsewhere can reach loopback: set NEXAR_INTERFACES={}, the way to the seed", way));
  const bool on_the_way = std::ranges::any_of(chosen, [&](const io::Address& address) { return interface_of(present, address) == way; });
  if (on_the_way) return ok(name, fmt::format("{}; the way to the seed is {}", seen, way));
  return wrong(name, fmt::format("{}, and the way to the seed is {}", seen, way),
               fmt::format("set NEXAR_INTERFACES={} unless the hosts have a network of their own for data there", way));
}

Finding check_mtu(const System& system, const std::string& interface) {
  const std::string name = "mtu of " + interface;
  const auto mtu = mtu_of(system, interface);
  if (!mtu) return warning(name, "the kernel does not tell", "mount /sys");
  const std::string seen = fmt::format("packets of {} bytes", *mtu);
  if (*mtu >= kMtuMin) return ok(name, seen);
  return wrong(name, seen, fmt::format("`ip link set dev {} mtu 1500`: QUIC cannot work below {}", interface, kMtuMin));
}

}  // namespace

Findings check_interfaces(const Surroundings& here) {
  const auto present = io::interface_addresses();
  if (!present) return {wrong("interfaces", present.error().sentence(), "this process must be allowed to list interfaces (netlink)")};
  const io::Address towards = towards_seed(here);
  const auto chosen = cluster::choose_candidates(*present, {.interfaces = here.interfaces, .towards_seed = towards});
  if (!chosen)
    return {wrong("interfaces", chosen.error().sentence(),
                  "set NEXAR_INTERFACES to an interface, address or network of this host, or leave it unset")};
  Findings found = {check_choice(*present, *chosen, towards)};
  std::vector<std::string> done;
  for (const io::Address& address : *chosen) {
    const std::string interface = interface_of(*present, address);
    if (interface.empty() || std::ranges::find(done, interface) != done.end()) continue;
    done.push_back(interface);
    found.push_back(check_mtu(here.system, interface));
  }
  return found;
}

}  // namespace nexar::tool::doctor
