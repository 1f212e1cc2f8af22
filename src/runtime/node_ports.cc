// The ports of a node: UDP for links, and the same number in TCP for lanes.
#include <utility>

#include <fmt/format.h>

#include "io/network_namespace.h"
#include "io/random.h"
#include "runtime/node_core.h"
#include "transport/tcp/lane.h"

namespace nexar::runtime {
namespace {

// Numbers that are tried when the kernel chooses: each is free in UDP, and nearly always in TCP too.
constexpr int kPortTries = 8;

bool wants_lanes(const Config& config) { return config.transport != Transport::kQuic && config.transport != Transport::kShm; }

}  // namespace

Result<void> NodeCore::open_ports(const Options& options) {
  if (options.port_first == 0) return open_port(options, options.address);
  Result<void> last;
  for (std::uint32_t port = options.port_first; port <= options.port_last; ++port) {
    last = open_port(options, options.address.with_port(static_cast<std::uint16_t>(port)));
    if (last) return last;
  }
  return Error(ErrorCode::kIo, fmt::format("no port from {} to {} could be opened", options.port_first, options.port_last))
      .with_cause(std::move(last).error());
}

// A TCP port that is taken costs the lanes, not the node, unless they were asked for.
Result<void> NodeCore::open_port(const Options& options, const io::Address& address) {
  Result<void> listening;
  for (int tries = 0; tries < (address.port() == 0 ? kPortTries : 1); ++tries) {
    if (auto opened = open_endpoint(options, address); !opened) return opened;
    if (!wants_lanes(config_)) return {};
    Result<std::unique_ptr<transport::tcp::Listener>> listener = transport::tcp::Listener::open(*loop_, endpoint_->local_address());
    if (listener) {
      listener_ = *std::move(listener);
      return {};
    }
    listening = std::move(listener).error();
  }
  if (config_.transport != Transport::kTcp) {
    warn("nobody can open a TCP lane to this node", listening.error());
    return {};
  }
  endpoint_.reset();
  return Error(ErrorCode::kUnsupported, "the transport is tcp, and the TCP port could not be opened").with_cause(listening.error());
}

// Links never end for silence by themselves: the detector decides who is lost, and it knows when its own loop did not run.
Result<void> NodeCore::open_endpoint(const Options& options, const io::Address& address) {
  endpoint_.reset();
  auto endpoint =
      transport::quic::Endpoint::open({*loop_, io::system_random(), base::Duration::zero()}, address, *options.identity, *this, *this);
  if (!endpoint) return std::move(endpoint).error();
  endpoint_ = *std::move(endpoint);
  return {};
}

void NodeCore::open_lanes(const Options& options) {
  if (!wants_lanes(config_)) return;
  const auto connect = [this, network_namespace = options.network_namespace](
                           const io::Address& to, const wire::LaneTicket& ticket, transport::tcp::LaneKeys keys,
                           transport::tcp::LaneHandler& handler) -> Result<std::unique_ptr<transport::tcp::Lane>> {
    std::unique_ptr<transport::tcp::Lane> lane;
    auto connecting = io::in_network_namespace(network_namespace, [&]() -> Result<void> {
      Result<std::unique_ptr<transport::tcp::Lane>> made = transport::tcp::Lane::connect(*loop_, to, ticket, std::move(keys), handler);
      if (!made) return std::move(made).error();
      lane = *std::move(made);
      return {};
    });
    if (!connecting) return std::move(connecting).error();
    return lane;
  };
  lanes_.emplace(mesh::LaneEnvironment{.loop = *loop_,
                                       .random = io::system_random(),
                                       .log = log_,
                                       .listener = listener_.get(),
                                       .connect = connect,
                                       .plain = !config_.encrypt_bulk,
                                       .forced = config_.transport == Transport::kTcp,
                                       .carrying = static_cast<std::uint16_t>(config_.tcp_lanes)});
  if (lanes_->plain) log_.warning("runtime", "bulk travels in plain text: encrypt_bulk is false");
}

}  // namespace nexar::runtime
