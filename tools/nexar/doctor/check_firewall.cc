// Whether two ports of this host can talk, over loopback and at every address that peers are told. A filter on what comes from other hosts
// is not seen here: that takes `--seed` on two of them.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cluster/candidates.h"
#include "doctor/checks.h"
#include "doctor/echo.h"
#include "doctor/probe.h"
#include "io/random.h"

namespace nexar::tool::doctor {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 1s;            // what stays on this host takes microseconds
constexpr std::size_t kAddressesMax = 8;  // each takes two threads

std::vector<io::Address> addresses_of(const Surroundings& here) {
  std::vector<io::Address> addresses = {io::Address::loopback_v4(0)};
  const auto present = io::interface_addresses();
  if (!present) return addresses;
  if (const auto chosen = cluster::choose_candidates(*present, {.interfaces = here.interfaces}))
    for (const io::Address& address : *chosen)
      if (addresses.size() < kAddressesMax && !address.is_loopback()) addresses.push_back(address);
  return addresses;
}

Finding judge(const std::string& protocol, const std::vector<std::string>& passed, const std::vector<std::string>& blocked) {
  const std::string name = protocol + " ports";
  if (blocked.empty()) return ok(name, fmt::format("two ports can talk at {}", fmt::join(passed, ", ")));
  return wrong(
      name, fmt::format("packets between two ports of this host do not pass at {}", fmt::join(blocked, ", ")),
      fmt::format(
          "let {} pass in the firewall of this host (`nft list ruleset`, `iptables -L`), for all ports or for the range of NEXAR_PORT",
          protocol == "udp" ? "UDP" : "TCP"));
}

}  // namespace

Findings check_firewall(const Surroundings& here) {
  const EchoDialect dialect(io::system_random().number<std::uint64_t>(), 0);
  const auto ports = parse_ports(here.port);
  auto echo = ports ? Echo::open(*ports, dialect) : Result<std::unique_ptr<Echo>>(ports.error());
  if (!echo) return {wrong("ports", echo.error().sentence(), "set NEXAR_PORT to a range with more free ports, or leave it unset")};

  // All at once, because silence takes its time.
  struct Asked {
    std::string host;
    std::future<bool> udp;
    std::future<bool> tcp;
  };
  std::vector<Asked> asked;
  for (const io::Address& address : addresses_of(here)) {
    const io::Address udp = address.with_port((*echo)->udp_port());
    const io::Address tcp = address.with_port((*echo)->tcp_port());
    const auto ask_udp = [&dialect, udp] {
      auto prober = Prober::open(udp, dialect);
      return prober && prober->reach(kPatience) == Reach::kAnswered;
    };
    const auto ask_tcp = [tcp] { return reach_tcp(tcp, kPatience) == Reach::kAnswered; };
    asked.push_back({address.host(), std::async(std::launch::async, ask_udp), std::async(std::launch::async, ask_tcp)});
  }

  std::vector<std::string> passed[2];
  std::vector<std::string> blocked[2];
  for (Asked& one : asked) {
    (one.udp.get() ? passed : blocked)[0].push_back(one.host);
    (one.tcp.get() ? passed : blocked)[1].push_back(one.host);
  }
  return {judge("udp", passed[0], blocked[0]), judge("tcp", passed[1], blocked[1])};
}

}  // namespace nexar::tool::doctor
