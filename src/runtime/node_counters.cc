// What a node counts.
#include <utility>

#include "runtime/node_core.h"

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
  engine_->run([&] {
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
  });
  return counters;
}

}  // namespace nexar::runtime
