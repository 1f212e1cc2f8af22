// Who is lost, and how the world ends.
//
//   silence, or a link's end without goodbye, or a peer's revoke
//     -> lose()       remembered, logged once
//     -> pronounce()  in the next turn of the loop, outside of every link: reads what has come, tells everybody, ends every operation,
//     closes
//                     the links to the lost
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"
#include "runtime/node_core.h"
#include "wire/limits.h"

namespace nexar::runtime {
namespace {

std::uint64_t nanoseconds(base::Time time) { return static_cast<std::uint64_t>(time.time_since_epoch().count()); }

}  // namespace

void NodeCore::beat() {
  if (closed_.load(std::memory_order_acquire) || failure_) return;
  const cluster::FailureDetector::Tick tick = detector_->tick(loop_->now());
  for (const Rank rank : tick.ping) send_heartbeat(rank);
  for (const Rank rank : tick.lost) lose(rank, fmt::format("it has not answered for {}", base::format_duration(config_.heartbeat_timeout)));
  if (const base::Time next = detector_->next(); next != base::Time::max()) heartbeat_timer_->set(next);
}

void NodeCore::send_heartbeat(Rank rank) {
  const base::Time now = loop_->now();
  if (mesh_->ping(rank, 0, nanoseconds(now))) heartbeats_[static_cast<std::size_t>(rank)].sent = now;
}

void NodeCore::on_pong(Rank rank, const wire::Pong& pong) {
  detector_->heard(rank, loop_->now());
  if (pong.nonce == 0) {
    Heartbeat& heartbeat = heartbeats_[static_cast<std::size_t>(rank)];
    if (heartbeat.sent && pong.time == nanoseconds(*heartbeat.sent)) heartbeat.round_trip = loop_->refresh() - *heartbeat.sent;
    return;
  }
  const auto found = pings_.find(pong.nonce);
  if (found == pings_.end()) return;
  Ping* ping = found->second;
  pings_.erase(found);
  ping->answered = loop_->refresh();
  ping->completion.complete();
}

Result<std::chrono::nanoseconds> NodeCore::ping(Rank peer) {
  const CallGate::Pass pass(gate_);
  if (!pass) return closed_error();
  Ping ping;
  std::uint64_t nonce = 0;
  engine_->post([&] {
    nonce = next_ping_++;
    ping.sent = loop_->refresh();
    if (closed_.load(std::memory_order_acquire) || !mesh_->ping(peer, nonce, nanoseconds(ping.sent)))
      ping.completion.complete();
    else
      pings_[nonce] = &ping;
  });
  if (!engine_->wait(ping.completion, deadline(config_.rpc_timeout))) engine_->run([&] { pings_.erase(nonce); });
  if (ping.answered) return *ping.answered - ping.sent;
  if (closed_.load(std::memory_order_acquire)) return closed_error();
  return Error(ErrorCode::kPeerLost, fmt::format("rank {} did not answer a ping", peer)).with_rank(peer);
}

void NodeCore::on_left(Rank rank) {
  detector_->remove(rank);
  log_.info("runtime", "a rank has left", {{"peer", rank}});
}

void NodeCore::on_ended(Rank rank) {
  detector_->remove(rank);
  formation_->unlinked(rank);
  host_->ended(rank);
  if (farewells_.empty() || mesh_->open_links() > 0) return;
  for (Completion* farewell : std::exchange(farewells_, {})) farewell->complete();
}

void NodeCore::on_lost(Rank rank, const transport::LinkEnd& end) {
  if (end.kind == transport::LinkEnd::Kind::kProtocol) ++protocol_errors_;
  if (end.kind == transport::LinkEnd::Kind::kExpelled)
    lose(rank_, fmt::format("by rank {}: {}", rank, end.error.sentence()));
  else
    lose(rank, end.error.sentence());
}

void NodeCore::on_revoked(Rank from, const wire::Revoke& revoke) {
  for (const NodeId& node : revoke.lost)
    if (const std::optional<Rank> rank = view_.rank_of(node))
      lose(*rank, *rank == rank_ ? fmt::format("by rank {}", from) : fmt::format("rank {} says so", from));
}

void NodeCore::on_aborted(Rank from, const std::string& reason) {
  if (failure_ || aborted_) return;
  aborted_ = Error(ErrorCode::kCancelled, fmt::format("rank {} aborted: {}", from, reason)).with_rank(from);
  log_.warning("runtime", "a rank aborted", {{"peer", from}, {"reason", reason}});
  schedule_verdict();
}

void NodeCore::lose(Rank rank, const std::string& why) {
  if (closed_.load(std::memory_order_acquire) || !losses_.add(rank, why)) return;
  if (rank == rank_)
    log_.warning("runtime", "this rank was declared lost", {{"why", why}});
  else
    log_.warning("runtime", "a rank is lost", {{"peer", rank}, {"why", why}});
  schedule_verdict();
}

void NodeCore::schedule_verdict() {
  if (!std::exchange(verdict_due_, true)) loop_->post([this] { pronounce(); });
}

// What had arrived is delivered before the verdict is: everything that the sockets hold is read first. That may bring more losses, which
// are then part of it.
void NodeCore::pronounce() {
  endpoint_->drain();
  for (const Rank lost : losses_.ranks())
    if (lost != rank_) mesh_->drain_lanes(lost);
  host_->drain();
  verdict_due_ = false;
  if (closed_.load(std::memory_order_acquire)) return;
  const bool first = !failure_;
  const Error verdict = aborted_ ? *aborted_ : losses_.error(rank_, view_.epoch);
  if (first)
    for (const wire::Revoke& revoke : losses_.revokes(view_)) mesh_->tell_all(revoke);
  collectives_->step_direct();  // what was written into shared memory has arrived, too
  collectives_->end_epoch();
  mesh_->revoke(verdict);
  if (aborted_) rpc_->end_all(verdict);  // otherwise calls go on between those that are left
  endpoint_->flush();
  for (Rank rank = 0; rank < size(); ++rank) {
    transport::Link* link = mesh_->link(rank);
    if (link != nullptr && losses_.contains(rank))
      link->expel(fmt::format("rank {} was declared lost by rank {}", rank, rank_));
    else if (link != nullptr && losses_.contains(rank_))
      link->abort(fmt::format("rank {} is out", rank_));
  }
  formation_->stop("the world is over");
  host_->stop("the world is over");
  end_formation(verdict);
  announce_failure(verdict);
}

void NodeCore::announce_failure(const Error& error) {
  if (failure_) return;
  failure_ = error;
  failure_event_->signal();
  if (failure_callback_) std::exchange(failure_callback_, nullptr)(error);
}

void NodeCore::on_failure(std::function<void(const Error&)> callback) {
  const CallGate::Pass pass(gate_);
  if (!pass) return;
  engine_->run([&] {
    if (failure_)
      callback(*failure_);
    else
      failure_callback_ = std::move(callback);
  });
}

// The frames go out with everything else before this node says goodbye, and that is waited for.
Result<void> NodeCore::abort(const std::string& reason) {
  const CallGate::Pass pass(gate_);
  if (!pass) return closed_error();
  engine_->run([&] {
    if (closed_.load(std::memory_order_acquire)) return;
    log_.warning("runtime", "this rank aborts", {{"reason", reason}});
    if (!failure_) {  // the first verdict stays
      aborted_ = Error(ErrorCode::kCancelled, fmt::format("rank {} aborted: {}", rank_, reason)).with_rank(rank_);
      mesh_->tell_all(wire::Abort{.reason = reason});
      collectives_->end_epoch();
      mesh_->revoke(*aborted_);
      rpc_->end_all(*aborted_);
      formation_->stop("this node aborts");
      host_->stop("this node aborts");
      end_formation(*aborted_);
      announce_failure(*aborted_);
    }
    mesh_->leave(fmt::format("rank {} aborted", rank_));
  });
  return wait_for_farewells();
}

}  // namespace nexar::runtime
