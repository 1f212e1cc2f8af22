#include "nexar/node.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "cluster/view.h"
#include "io/clock.h"
#include "io/random.h"
#include "nexar/rpc.h"
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

// Nodes of one network namespace are on one host, those of different ones are not.
HostId host_of(const LocalOptions& options, std::size_t rank) {
  HostId host;
  if (options.places.empty()) return host;
  const auto here = [&](const LocalOptions::Place& place) { return place.network_namespace == options.places[rank].network_namespace; };
  const auto first = std::find_if(options.places.begin(), options.places.end(), here) - options.places.begin();
  base::store_le(host.bytes.data(), static_cast<std::uint64_t>(first));
  return host;
}

// What a destructor cannot return. A child of fork has nothing to close.
void close_and_log(NodeCore& core) {
  if (auto closed = core.close(); !closed && closed.error().code() != ErrorCode::kUnsupported)
    core.warn("a node was not closed as it should be", closed.error());
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
  cluster::View view;
  view.members.resize(static_cast<std::size_t>(n));

  std::vector<std::shared_ptr<NodeCore>> cores;
  for (std::size_t rank = 0; rank < view.members.size(); ++rank) {
    cluster::Member& member = view.members[rank];
    io::system_random().fill(member.node.bytes);
    member.host = host_of(options, rank);
    Result<crypto::Identity> identity = authority->make_node(member.node, io::real_clock().wall());
    if (!identity) return std::move(identity).error();
    Result<io::Address> address = address_of(options, rank);
    if (!address) return std::move(address).error();
    NodeCore::Options core_options{.identity = &*identity,
                                   .config = options.config,
                                   .address = *address,
                                   .log = options.log,
                                   .pool = options.pool,
                                   .adapter = options.adapter};
    if (!options.places.empty()) core_options.network_namespace = options.places[rank].network_namespace;
    Result<std::shared_ptr<NodeCore>> core = NodeCore::open(core_options);
    if (!core) return std::move(core).error();
    member.addresses = {(*core)->address()};
    cores.push_back(*std::move(core));
  }
  std::vector<Node> nodes;
  for (std::size_t rank = 0; rank < cores.size(); ++rank) {
    if (auto formed = cores[rank]->form(static_cast<Rank>(rank), view); !formed) return std::move(formed).error();
    nodes.emplace_back(cores[rank]);
  }
  for (const auto& core : cores)
    if (auto ready = core->wait_ready(kLocalFormation); !ready) return std::move(ready).error();
  return nodes;
}

Node::Node(std::shared_ptr<NodeCore> core) : core_(std::move(core)) {}
Node::Node(Node&&) noexcept = default;

Node& Node::operator=(Node&& other) noexcept {
  if (this != &other) {
    if (core_ != nullptr) close_and_log(*core_);
    core_ = std::move(other.core_);
  }
  return *this;
}

Node::~Node() {
  if (core_ != nullptr) close_and_log(*core_);
}

Rank Node::rank() const { return core_->rank(); }
int Node::size() const { return core_->size(); }
Rpc Node::rpc() const { return {core_, world(), 0}; }
Group Node::world() const { return {core_, core_->world()}; }
const Config& Node::config() const { return core_->config(); }
Result<void> Node::close() { return core_->close(); }
int Node::host_index() const { return host_index(rank()); }
int Node::hosts() const { return core_->places().hosts(); }
int Node::local_rank() const { return core_->places().local_rank(rank()); }
int Node::local_size() const { return core_->places().local_size(rank()); }
int Node::host_index(Rank rank) const { return rank < 0 || rank >= size() ? -1 : core_->places().host_index(rank); }

Result<std::chrono::nanoseconds> Node::ping(Rank peer) const {
  if (auto checked = core_->check_call("ping"); !checked) return std::move(checked).error();
  if (peer < 0 || peer >= size() || peer == rank())
    return Error(ErrorCode::kInvalidArgument, fmt::format("ping: rank {} is no peer of rank {} in a world of {}", peer, rank(), size()));
  return core_->ping(peer);
}

Result<NodeCounters> Node::counters() const {
  if (auto checked = core_->check_call("counters"); !checked) return std::move(checked).error();
  return core_->counters();
}

Result<void> Node::on_failure(std::function<void(const Error&)> callback) {
  if (auto checked = core_->check_call("on_failure"); !checked) return checked;
  core_->on_failure(std::move(callback));
  return {};
}

Result<int> Node::failure_descriptor() const { return core_->failure_descriptor(); }

Result<void> Node::abort(const std::string& reason) {
  if (auto checked = core_->check_call("abort"); !checked) return checked;
  return core_->abort(reason);
}

}  // namespace nexar
