// Node::join: from an address and a token to a rank of a world.
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/time.h"
#include "base/units.h"
#include "cluster/candidates.h"
#include "cluster/host_id.h"
#include "cluster/join_client.h"
#include "cluster/token.h"
#include "io/address.h"
#include "io/clock.h"
#include "io/host.h"
#include "nexar/node.h"
#include "nexar/seed.h"
#include "plan/version.h"
#include "runtime/node_core.h"

namespace nexar {
namespace {

using runtime::NodeCore;

Error invalid(std::string sentence) { return Error(ErrorCode::kInvalidArgument, std::move(sentence)); }

Result<cluster::Token> token_of(const JoinOptions& options) {
  if (!options.token.empty()) return cluster::Token::parse(options.token);
  if (!options.config.token.empty()) return cluster::Token::parse(options.config.token);
  if (options.config.token_file.empty())
    return invalid("join: there is no token; set NEXAR_TOKEN or NEXAR_TOKEN_FILE, or JoinOptions::token");
  Result<std::string> text = read_token_file(options.config.token_file);
  if (!text) return std::move(text).error();
  return cluster::Token::parse(*text);
}

struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
};

// PORT or FIRST-LAST; nothing: any.
Result<PortRange> ports_of(const std::string& text) {
  if (text.empty()) return PortRange{};
  const std::size_t dash = text.find('-');
  const std::optional<std::uint64_t> first = base::parse_number(std::string_view(text).substr(0, dash));
  const std::optional<std::uint64_t> last = dash == std::string::npos ? first : base::parse_number(std::string_view(text).substr(dash + 1));
  if (!first || !last || *first == 0 || *last > 65535 || *first > *last)
    return invalid(fmt::format("join: the port is \"{}\"; accepted is PORT or FIRST-LAST, from 1 to 65535", text));
  return PortRange{static_cast<std::uint16_t>(*first), static_cast<std::uint16_t>(*last)};
}

// What a view that comes at the last moment leaves for linking to everybody in it: the others have begun to.
constexpr base::Duration kLinkLimit = std::chrono::seconds(3);

// On all interfaces: with IPv6, which takes IPv4 as well, or with IPv4 alone on a host that has nothing else.
Result<std::shared_ptr<NodeCore>> open_port(const JoinOptions& options, const crypto::Identity& identity, const PortRange& ports,
                                            const cluster::Token& token) {
  NodeCore::Options core{.identity = &identity,
                         .config = options.config,
                         .address = io::Address::any_v6(0),
                         .port_first = ports.first,
                         .port_last = ports.last,
                         .log = options.log,
                         .pool = options.pool,
                         .adapter = options.adapter,
                         .token = &token};
  Result<std::shared_ptr<NodeCore>> opened = NodeCore::open(core);
  if (opened) return opened;
  core.address = io::Address::any_v4(0);
  return NodeCore::open(core);
}

}  // namespace

Result<Node> Node::join(const JoinOptions& options) {
  if (auto valid = options.config.validate(); !valid) return std::move(valid).error();
  const base::Time deadline = io::real_clock().now() + options.deadline;
  const std::string& seed = options.seed.empty() ? options.config.seed : options.seed;
  if (seed.empty()) return invalid("join: there is no seed; set NEXAR_SEED or JoinOptions::seed to its host:port");
  Result<cluster::Token> token = token_of(options);
  if (!token) return std::move(token).error();
  const Result<PortRange> ports = ports_of(options.port);
  if (!ports) return ports.error();

  Result<std::unique_ptr<cluster::JoinClient>> client = cluster::JoinClient::open({.seed = seed,
                                                                                   .token = token->copy(),
                                                                                   .rank = options.rank,
                                                                                   .host = cluster::this_host(options.config.host_id),
                                                                                   .config = options.config,
                                                                                   .plan_version = plan::kPlanVersion,
                                                                                   .name = io::process_name(),
                                                                                   .deadline = deadline,
                                                                                   .cores = io::own_cores()});
  if (!client) return std::move(client).error();
  Result<crypto::Identity> identity = (*client)->enroll();
  if (!identity) return std::move(identity).error();

  Result<std::shared_ptr<NodeCore>> core = open_port(options, *identity, *ports, *token);
  if (!core) return std::move(core).error();
  const io::Address& listens = (*core)->address();
  Result<std::vector<io::InterfaceAddress>> present = io::interface_addresses();
  if (!present) return std::move(present).error();
  const Result<io::Address> towards_seed = (*client)->own_address();
  if (!towards_seed) return towards_seed.error();
  const Result<std::vector<io::Address>> candidates =
      cluster::choose_candidates(*present, {.interfaces = options.interfaces,
                                            .towards_seed = *towards_seed,
                                            .port = listens.port(),
                                            .v6 = listens.family() == io::Address::Family::kV6});
  if (!candidates) return candidates.error();

  Result<cluster::JoinClient::Joined> joined = (*client)->wait_view(*candidates);
  if (!joined) return std::move(joined).error();
  if (auto formed = (*core)->form(joined->rank, std::move(joined->view)); !formed) return std::move(formed).error();
  if (auto ready = (*core)->wait_ready(std::max(deadline - io::real_clock().now(), kLinkLimit)); !ready) return std::move(ready).error();
  return Node(*std::move(core));
}

}  // namespace nexar
