// Joins the world of the seed as any node does, and says what was wrong when that fails.
#include <chrono>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "doctor/checks.h"
#include "doctor/peers.h"
#include "nexar/node.h"

namespace nexar::tool::doctor {
namespace {

// What a refusal says, and what is to be done about it. The first that fits counts.
struct Case {
  std::string_view says;
  std::string_view check;
  std::string_view remedy;
};

constexpr Case kCases[] = {
    {"is not valid before", "clock of the seed",
     "the seed's clock is ahead of this one by more than 10 minutes: set both by NTP (`timedatectl set-ntp true`), then start the seed "
     "anew"},
    {"expired", "clock of the seed",
     "this clock is ahead of the seed's by more than the life of a certificate: set both by NTP (`timedatectl set-ntp true`)"},
    {"and the token names", "token", "the token is of another cluster: copy the token file that belongs to this seed's seed file"},
    {"token is not this cluster's", "token", "copy the token file that belongs to this seed's seed file"},
    {"does not know the secret", "token", "the seed has another secret than the token: copy the token file that belongs to its seed file"},
    {"no token", "token", "set NEXAR_TOKEN_FILE to the file that `nexar token new` or `nexar seed --token-file` wrote"},
    {"token", "token",
     "set NEXAR_TOKEN or NEXAR_TOKEN_FILE to the token as `nexar token new` wrote it, in a file that only its owner can read"},
    {"is complete", "world",
     "the world of this seed is running: give the doctor a seed of its own (`nexar seed --listen HOST:PORT --world 2`)"},
    {"is configured with", "configuration", "set the same NEXAR_* variables on all hosts"},
    {"version", "version", "install the same version of nexar on all hosts"},
};

Finding explain(const Error& error) {
  const std::string sentence =
      error.cause() != nullptr ? fmt::format("{}: {}", error.sentence(), error.cause()->sentence()) : error.sentence();
  // Everybody who came had passed handshake and proof by then.
  const auto says = [&](std::string_view text) { return sentence.find(text) != std::string::npos; };
  if (error.code() == ErrorCode::kTimeout && (says("nodes have come") || says("waits for other nodes")))
    return warning("world", fmt::format("handshake and token are right, and then {}", sentence),
                   "start `nexar doctor --seed` on the other hosts too, at the same time");
  for (const Case& one : kCases)
    if (says(one.says)) return wrong(std::string(one.check), sentence, std::string(one.remedy));
  if (error.code() == ErrorCode::kTimeout)
    return wrong("world", sentence,
                 "let UDP pass between all hosts, both ways, at the ports of NEXAR_PORT, and see that NEXAR_INTERFACES names the network "
                 "they share");
  return wrong("world", error.to_string(), "correct what it says");
}

}  // namespace

Findings check_world(const Surroundings& here) {
  JoinOptions options;
  options.config = here.config;
  options.config.log = LogLevel::kOff;  // what matters is in the error
  options.seed = here.seed;
  options.deadline = here.patience;
  options.port = here.port;
  options.interfaces = here.interfaces;
  Result<Node> node = Node::join(options);
  if (!node) return {explain(node.error())};
  Findings found = {
      ok("world", fmt::format("joined as rank {} of {}: handshake, token and certificate are right", node->rank(), node->size()))};
  const Findings peers = check_peers(*node, here);
  found.insert(found.end(), peers.begin(), peers.end());
  // Others may be gone already, which is no fault of the network.
  static_cast<void>(node->close());
  return found;
}

}  // namespace nexar::tool::doctor
