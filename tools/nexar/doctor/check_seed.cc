// The way to the seed: its name, a route, and whether its port answers, which takes no secret.
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cluster/host_port.h"
#include "doctor/checks.h"
#include "doctor/judge_path.h"
#include "doctor/probe.h"

namespace nexar::tool::doctor {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 2s;            // longer than any round trip on Earth and a lost packet or two
constexpr std::size_t kAddressesMax = 4;  // silence at each costs the patience

struct Answer {
  Reach reach = Reach::kSilent;
  Findings findings;
};

Answer examine(const io::Address& seed) {
  const QuicDialect dialect;
  auto prober = Prober::open(seed, dialect);
  if (!prober) return {Reach::kFiltered, {}};
  const Path path = prober->examine(kPatience);
  if (path.reach != Reach::kAnswered) return {path.reach, {}};
  std::string interface;
  if (const auto source = io::source_address(seed))
    if (const auto present = io::interface_addresses()) interface = interface_of(*present, *source);
  return {Reach::kAnswered, {judge_loss("the seed", path), judge_size("the seed", path, interface)}};
}

Finding unreachable(const Surroundings& here, const io::Address& seed, Reach reach) {
  const std::string name = "udp to the seed";
  const std::string port = std::to_string(seed.port());
  switch (reach) {
    case Reach::kRefused:
      return wrong(name, fmt::format("{}, or a router on the way, says that nobody listens at UDP port {}", seed.host(), port),
                   fmt::format("start `nexar seed --listen 0.0.0.0:{}` there, or correct the address {}", port, here.seed));
    case Reach::kFiltered:
      return wrong(name, fmt::format("this host sends nothing to {}: there is no route, or its own firewall forbids it", seed.to_string()),
                   fmt::format("look at `ip route get {}` and `nft list ruleset`", seed.host()));
    default: break;
  }
  // Whether the host is there at all: even a reset of TCP tells.
  const Reach tcp = reach_tcp(seed, 1s);
  if (tcp == Reach::kAnswered || tcp == Reach::kRefused)
    return wrong(name, fmt::format("{} answers TCP and is silent to UDP port {}", seed.host(), port),
                 fmt::format("a firewall blocks UDP: let UDP port {} pass there, and the answers back", port));
  return wrong(name, fmt::format("{} answers nothing", seed.to_string()),
               fmt::format("see that the host is up and `nexar seed` runs there, and let UDP port {} pass every firewall between", port));
}

}  // namespace

Findings check_seed(const Surroundings& here) {
  const char* name = "name of the seed";
  const auto place = cluster::parse_host_port(here.seed);
  if (!place) return {wrong(name, place.error().sentence(), "write the seed's address as HOST:PORT")};
  const auto addresses = io::resolve(place->host, place->port);
  if (!addresses)
    return {
        wrong(name, addresses.error().sentence(), "correct the name, or ask the name server (`getent hosts NAME`), or use an IP address")};
  std::vector<std::string> texts;
  for (const io::Address& address : *addresses) texts.push_back(address.to_string());
  Findings found = {ok(name, fmt::format("{} is {}", here.seed, fmt::join(texts, ", ")))};

  Answer last;
  const std::size_t count = std::min(addresses->size(), kAddressesMax);
  for (std::size_t i = 0; i < count; ++i) {
    last = examine((*addresses)[i]);
    if (last.reach != Reach::kAnswered) continue;
    found.insert(found.end(), last.findings.begin(), last.findings.end());
    return found;
  }
  found.push_back(unreachable(here, addresses->front(), last.reach));
  return found;
}

}  // namespace nexar::tool::doctor
