// What a node counts.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "io/host.h"
#include "runtime/node_core.h"
#include "wire/info_messages.h"

namespace nexar::runtime {

namespace {

BulkCounters bulk_counters(const mesh::LaneReport& lanes) {
  return {.transport = lanes.open > 0 ? Transport::kTcp : Transport::kQuic,
          .reason = lanes.reason,
          .tcp_lanes = lanes.open,
          .tcp_lanes_lost = lanes.died,
          .tcp_bytes_sent = lanes.traffic.bytes_sent,
          .tcp_bytes_received = lanes.traffic.bytes_received};
}

// A peer as observers are told of it.
wire::InfoPeer told_of(const PeerCounters& peer) {
  using Way = wire::InfoPeer::Way;
  using State = wire::InfoPeer::State;
  wire::InfoPeer told;
  told.rank = peer.rank;
  told.state = peer.state == PeerCounters::State::kLost   ? State::kLost
               : peer.state == PeerCounters::State::kLeft ? State::kLeft
                                                          : State::kLinked;
  told.link = peer.transport.empty() ? Way::kNone : peer.transport == "shm" ? Way::kShm : Way::kQuic;
  if (told.link != Way::kNone)
    told.bulk = peer.bulk.transport == Transport::kShm ? Way::kShm : peer.bulk.transport == Transport::kTcp ? Way::kTcp : Way::kQuic;
  told.address = peer.address;
  told.no_shm = peer.no_shm;
  told.no_tcp = peer.bulk.reason;
  told.round_trip_ns = static_cast<std::uint64_t>(peer.rtt.value_or(std::chrono::nanoseconds(0)).count());
  for (std::size_t lane = 0; lane < told.lanes.size(); ++lane)
    told.lanes[lane] = {peer.traffic.frames_sent[lane], peer.traffic.bytes_sent[lane], peer.traffic.frames_received[lane],
                        peer.traffic.bytes_received[lane]};
  told.tcp_lanes = static_cast<std::uint32_t>(peer.bulk.tcp_lanes);
  told.tcp_lanes_lost = peer.bulk.tcp_lanes_lost;
  told.tcp_bytes_sent = peer.bulk.tcp_bytes_sent;
  told.tcp_bytes_received = peer.bulk.tcp_bytes_received;
  return told;
}

}  // namespace

PeerCounters NodeCore::peer_counters(Rank rank) const {
  PeerCounters counters;
  counters.rank = rank;
  if (rank == rank_) return counters;
  const mesh::Peer& peer = std::as_const(*mesh_).peer(rank);
  const Heartbeat& heartbeat = heartbeats_[static_cast<std::size_t>(rank)];
  if (losses_.contains(rank))
    counters.state = PeerCounters::State::kLost;
  else
    counters.state = peer.departure() ? PeerCounters::State::kLeft : PeerCounters::State::kLinked;
  if (peer.link() != nullptr) counters.address = heartbeat.address;
  if (peer.link() != nullptr) counters.transport = host_->uses_memory(rank) ? "shm" : "quic";
  counters.no_shm = host_->why_not(rank);
  counters.rtt = heartbeat.round_trip;
  for (std::size_t lane = 0; lane < 4; ++lane) {
    const transport::LaneCounters& passed = peer.counters(static_cast<wire::Lane>(lane));
    counters.traffic.frames_sent[lane] = passed.frames_sent;
    counters.traffic.bytes_sent[lane] = passed.bytes_sent;
    counters.traffic.frames_received[lane] = passed.frames_received;
    counters.traffic.bytes_received[lane] = passed.bytes_received;
  }
  counters.bulk = bulk_counters(peer.lanes().report());
  if (host_->uses_memory(rank)) counters.bulk.transport = Transport::kShm;
  return counters;
}

Result<NodeCounters> NodeCore::counters() {
  const CallGate::Pass pass(gate_);
  if (!pass) return closed_error();
  NodeCounters counters;
  engine_->run([&] { counters = count(); });
  return counters;
}

NodeCounters NodeCore::count() const {
  NodeCounters counters;
  for (Rank rank = 0; rank < size(); ++rank) counters.peers.push_back(peer_counters(rank));
  const transport::quic::EndpointCounters& endpoint = endpoint_->counters();
  counters.handshakes_refused = endpoint.handshakes_refused;
  counters.handshakes_dropped = endpoint.handshakes_dropped;
  counters.retries_sent = endpoint.retries_sent;
  counters.packets_ignored = endpoint.packets_ignored;
  counters.protocol_errors = protocol_errors_;
  counters.frames_of_other_epochs = mesh_->frames_of_other_epochs();
  counters.rpc = rpc_counters();
  counters.lending = {lending_->lent(), lending_->borrowed(), lending_->bytes_lent()};
  return counters;
}

// What observers are told: the same, and the world.
Result<cluster::Observers::Snapshot> NodeCore::snapshot() const {
  if (mesh_ == nullptr) return Error(ErrorCode::kRefused, "this node has no view yet");
  const NodeCounters counters = count();
  cluster::Observers::Snapshot seen;
  seen.answer.rank = rank_;
  seen.answer.name = io::process_name();
  seen.answer.counters = {.handshakes_refused = counters.handshakes_refused,
                          .handshakes_dropped = counters.handshakes_dropped,
                          .retries_sent = counters.retries_sent,
                          .packets_ignored = counters.packets_ignored,
                          .protocol_errors = counters.protocol_errors,
                          .frames_of_other_epochs = counters.frames_of_other_epochs,
                          .rpc_calls = counters.rpc.calls,
                          .rpc_served = counters.rpc.served,
                          .rpc_refused = counters.rpc.refused,
                          .rpc_late_answers = counters.rpc.late_answers,
                          .rpc_calling = counters.rpc.calling,
                          .rpc_serving = counters.rpc.serving,
                          .rpc_serving_bytes = counters.rpc.serving_bytes,
                          .rpc_threads = counters.rpc.threads};
  seen.view = std::make_shared<const cluster::View>(view_);
  for (const PeerCounters& peer : counters.peers)
    if (peer.rank != rank_) seen.peers.push_back(told_of(peer));
  return seen;
}

}  // namespace nexar::runtime
