#include "nexar/node.h"

#include <utility>

#include <fmt/format.h>

#include "io/clock.h"
#include "io/random.h"
#include "runtime/node_core.h"

namespace nexar {
namespace {

using runtime::NodeCore;

// Handshakes in one process take milliseconds; this is for a machine that is very busy.
constexpr std::chrono::seconds kLocalFormation(60);

// Certificates and links grow with the square; a test that needs more ranks than this wants processes.
constexpr int kLocalNodesMax = 256;

Result<io::Address> address_of(const LocalOptions& options, std::size_t rank) {
  if (options.places.empty() || options.places[rank].address.empty()) return io::Address::loopback_v4(0);
  const std::string& text = options.places[rank].address;
  return io::Address::parse(text.find(':') == std::string::npos ? text + ":0" : "[" + text + "]:0");
}

}  // namespace

Result<std::vector<Node>> Node::local(int n, const LocalOptions& options) {
  if (n < 1 || n > kLocalNodesMax)
    return Error(ErrorCode::kInvalidArgument, fmt::format("a local world has 1 to {} nodes, not {}", kLocalNodesMax, n));
  if (!options.places.empty() && options.places.size() != static_cast<std::size_t>(n))
    return Error(ErrorCode::kInvalidArgument, fmt::format("{} places were given for {} nodes", options.places.size(), n));
  if (auto valid = options.config.validate(); !valid) return std::move(valid).error();

  ClusterId cluster;
  io::system_random().fill(cluster.bytes);
  Result<crypto::LocalAuthority> authority = crypto::LocalAuthority::make(cluster);
  if (!authority) return std::move(authority).error();
  runtime::View view;
  view.members.resize(static_cast<std::size_t>(n));
  for (NodeId& member : view.members) io::system_random().fill(member.bytes);

  std::vector<std::shared_ptr<NodeCore>> cores;
  std::vector<io::Address> addresses;
  for (std::size_t rank = 0; rank < view.members.size(); ++rank) {
    Result<crypto::Identity> identity = authority->make_node(view.members[rank], io::real_clock().wall());
    if (!identity) return std::move(identity).error();
    Result<io::Address> address = address_of(options, rank);
    if (!address) return std::move(address).error();
    Result<std::shared_ptr<NodeCore>> core =
        NodeCore::open({static_cast<Rank>(rank), view, &*identity, options.config, *address,
                        options.places.empty() ? std::string() : options.places[rank].network_namespace});
    if (!core) return std::move(core).error();
    addresses.push_back((*core)->address());
    cores.push_back(*std::move(core));
  }
  for (const auto& core : cores)
    if (auto connected = core->connect(addresses); !connected) return std::move(connected).error();
  std::vector<Node> nodes;
  for (auto& core : cores) {
    if (auto ready = core->wait_ready(kLocalFormation); !ready) return std::move(ready).error();
    nodes.emplace_back(std::move(core));
  }
  return nodes;
}

Node::Node(std::shared_ptr<NodeCore> core) : core_(std::move(core)) {}
Node::Node(Node&&) noexcept = default;

Node& Node::operator=(Node&& other) noexcept {
  if (this != &other) {
    if (core_ != nullptr) (void)core_->close();
    core_ = std::move(other.core_);
  }
  return *this;
}

Node::~Node() {
  if (core_ != nullptr) (void)core_->close();
}

Rank Node::rank() const { return core_->rank(); }
int Node::size() const { return core_->size(); }
Group Node::world() const { return {core_, runtime::kWorldGroup}; }
const Config& Node::config() const { return core_->config(); }
Result<void> Node::close() { return core_->close(); }

Result<std::chrono::nanoseconds> Node::ping(Rank peer) const {
  if (auto checked = core_->check_call("ping"); !checked) return std::move(checked).error();
  if (peer < 0 || peer >= size() || peer == rank())
    return Error(ErrorCode::kInvalidArgument, fmt::format("ping: rank {} is no peer of rank {} in a world of {}", peer, rank(), size()));
  return core_->ping(peer);
}

Result<LinkTraffic> Node::traffic(Rank peer) const {
  if (auto checked = core_->check_call("traffic"); !checked) return std::move(checked).error();
  if (peer < 0 || peer >= size())
    return Error(ErrorCode::kInvalidArgument, fmt::format("traffic: there is no rank {} in a world of {}", peer, size()));
  return core_->traffic(peer);
}

}  // namespace nexar
