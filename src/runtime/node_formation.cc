// How a node becomes a rank: links to everybody.
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"
#include "io/clock.h"
#include "runtime/node_core.h"

namespace nexar::runtime {

Result<void> NodeCore::form(Rank rank, cluster::View view) {
  if (rank < 0 || rank >= view.size() || view.member(rank).node != node_)
    return Error(ErrorCode::kInvalidArgument, fmt::format("node {} is not rank {} of the view", to_string(node_), rank));
  const CallGate::Pass pass(gate_);
  if (!pass) return closed_error();
  engine_->run([&] {
    rank_ = rank;
    view_ = std::move(view);
    places_.emplace(view_);
    log_.set_context("rank", std::to_string(rank_));
    log_.set_context("epoch", std::to_string(view_.epoch));
    heartbeats_.resize(view_.members.size());
    mesh_ = std::make_unique<mesh::Mesh>(rank_, size(), view_.epoch, mesh_events());
    begin_collectives();
    detector_ = std::make_unique<cluster::FailureDetector>(
        size(), cluster::HeartbeatOptions{config_.heartbeat_interval, config_.heartbeat_timeout});
    if (closed_.load(std::memory_order_acquire)) return;
    formation_->begin(rank_, view_);
    if (size() == 1) end_formation(std::nullopt);
  });
  return {};
}

Result<void> NodeCore::wait_ready(std::chrono::nanoseconds limit) {
  const CallGate::Pass pass(gate_);
  if (!pass) return closed_error();
  if (engine_->wait(formed_, deadline(limit))) return formation_error_ ? Result<void>(*formation_error_) : Result<void>();
  std::vector<Rank> missing;
  std::vector<std::string> causes;
  engine_->run([&] {
    missing = formation_->missing();
    for (const Rank peer : missing) causes.push_back(formation_->explain(peer));
  });
  return Error(ErrorCode::kTimeout,
               fmt::format("rank {} has no link after {} to {}", rank_, base::format_duration(limit), fmt::join(causes, ", ")))
      .with_ranks(missing);
}

wire::Hello NodeCore::hello() const {
  const mesh::EagerLimits limits;
  wire::Hello hello;
  hello.node = node_;
  hello.cluster = authority_.cluster();
  hello.config_digest = config_.digest();
  hello.eager_bytes = limits.bytes;
  hello.eager_messages = limits.messages;
  hello.announcements = limits.announcements;
  return hello;
}

mesh::Events NodeCore::mesh_events() {
  mesh::Events events{
      .ready = [this](Rank rank) { on_linked(rank); },
      .lost = [this](Rank rank, const transport::LinkEnd& end) { on_lost(rank, end); },
      .pong = [this](Rank rank, const wire::Pong& pong) { on_pong(rank, pong); },
      .left = [this](Rank rank) { on_left(rank); },
      .ended = [this](Rank rank) { on_ended(rank); },
      .revoked = [this](Rank rank, const wire::Revoke& revoke) { on_revoked(rank, revoke); },
      .aborted = [this](Rank rank, const std::string& reason) { on_aborted(rank, reason); },
  };
  add_collective_events(events);
  return events;
}

// A peer's certificate must be of our authority; whether it is a member is asked when it says hello.
Result<void> NodeCore::verify(const crypto::Certificate& certificate) {
  return crypto::verify(certificate, authority_, authority_.cluster(), io::real_clock().wall());
}

transport::LinkHandler* NodeCore::on_link(transport::Link& link) { return formation_->accept(link); }

// The first heartbeat follows at once: it tells a callee that it may send.
void NodeCore::on_linked(Rank rank) {
  formation_->confirmed(rank);
  heartbeats_[static_cast<std::size_t>(rank)].address = mesh_->link(rank)->peer_address().to_string();
  detector_->add(rank, loop_->now());
  send_heartbeat(rank);
  heartbeat_timer_->set(detector_->next());
  if (formation_->missing().empty()) end_formation(std::nullopt);
}

void NodeCore::end_formation(std::optional<Error> error) {
  if (formed_.is_done()) return;
  formation_error_ = std::move(error);
  formed_.complete();
}

}  // namespace nexar::runtime
