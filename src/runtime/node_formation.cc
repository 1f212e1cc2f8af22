// How a node becomes a rank: links to everybody.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"
#include "io/clock.h"
#include "io/host.h"
#include "plan/version.h"
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
    core_share_ = cluster::core_share(view_, rank_, {std::max(io::host().cores, 1), io::online_cores()});
    engine_->set_core_share(core_share_);
    log_.debug("runtime", "how threads wait follows from the cores", {{"crowded", core_share_.crowded}, {"spins", core_share_.spins}});
    mesh_ = std::make_unique<mesh::Mesh>(rank_, size(), view_.epoch, mesh_events(), mesh::EagerLimits{}, lanes_ ? &*lanes_ : nullptr);
    const rpc::PeerLimits peer_limits{config_.rpc_calls_per_peer, config_.rpc_bytes_per_peer};
    rpc_ = std::make_unique<rpc::Service>(*loop_, *mesh_,
                                          rpc::Limits{peer_limits, {config_.rpc_workers, config_.rpc_spare_workers, config_.rpc_queue}});
    begin_collectives();
    detector_ = std::make_unique<cluster::FailureDetector>(
        size(), cluster::HeartbeatOptions{config_.heartbeat_interval, config_.heartbeat_timeout});
    form_host();
    if (closed_.load(std::memory_order_acquire)) return;
    host_->begin();
    formation_->begin(rank_, view_);
    if (size() == 1) end_formation(std::nullopt);
  });
  return {};
}

// Peers on this host are reached through memory if they can be: their links are the mesh's when that is decided.
void NodeCore::form_host() {
  lending_ = std::make_unique<collective::HostLending>(
      collective::HostLending::Environment{[this](int local, transport::shm::SentLoan loan) { return host_->tell(local, std::move(loan)); },
                                           [this] { engine_->post([this] { lending_->work(); }); }});
  host_ = std::make_unique<cluster::HostFormation>(
      cluster::HostFormation::Environment{*loop_, io::system_random(), log_, network_namespace_, lending_.get()}, rank_, view_, *places_,
      config_,
      cluster::HostFormation::Events{
          .handler = [this](Rank rank) -> transport::LinkHandler& { return mesh_->handler(rank); },
          .attach =
              [this](Rank rank, transport::Link& link, const wire::Hello& theirs) {
                mesh_->attach(rank, link, {theirs.eager_bytes, theirs.eager_messages, theirs.announcements});
              },
          .may_send = [this](Rank rank) { mesh_->handler(rank).on_ready(); },
          .lost = [this](Rank rank, const transport::LinkEnd& end) { on_lost(rank, end); },
          .unlinked = [this](Rank rank) { formation_->unlinked(rank); },
          .impossible = [this](const Error& error) { end_formation(error); },
      });
}

bool NodeCore::is_formed() const {
  for (Rank rank = 0; rank < size(); ++rank)
    if (host_->is_undecided(rank)) return false;
  return formation_->missing().empty();
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
    for (Rank peer = 0; peer < size(); ++peer)
      if (host_->is_undecided(peer) && std::find(missing.begin(), missing.end(), peer) == missing.end()) {
        missing.push_back(peer);
        causes.push_back(fmt::format("rank {} (which has not said whether it shares memory)", peer));
      }
  });
  if (missing.empty())
    return Error(ErrorCode::kTimeout,
                 fmt::format("rank {} has links to everybody, and not all have said within {} whether they share memory", rank_,
                             base::format_duration(limit)));
  return Error(ErrorCode::kTimeout,
               fmt::format("rank {} has no link after {} to {}", rank_, base::format_duration(limit), fmt::join(causes, ", ")))
      .with_ranks(missing);
}

wire::Hello NodeCore::hello() const {
  const mesh::EagerLimits limits;
  wire::Hello hello;
  hello.plan_version = plan::kPlanVersion;
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
      .verdict_due = [this] { return verdict_due_; },
      .ended = [this](Rank rank) { on_ended(rank); },
      .revoked = [this](Rank rank, const wire::Revoke& revoke) { on_revoked(rank, revoke); },
      .aborted = [this](Rank rank, const std::string& reason) { on_aborted(rank, reason); },
      .lanes_settled = [this](Rank rank) { on_lanes_settled(rank); },
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
  end_formation_if_ready();
}

// Forced lanes are part of being ready.
void NodeCore::on_lanes_settled(Rank rank) {
  const mesh::LaneReport lanes = std::as_const(*mesh_).peer(rank).lanes().report();
  if (lanes.open == 0)
    return end_formation(
        Error(ErrorCode::kUnsupported, fmt::format("the transport is tcp, and there is no TCP lane to rank {}: {}", rank, lanes.reason))
            .with_rank(rank));
  end_formation_if_ready();
}

void NodeCore::end_formation_if_ready() {
  if (!is_formed()) return;
  if (config_.transport == Transport::kTcp)
    for (Rank peer = 0; peer < size(); ++peer)
      if (peer != rank_ && !std::as_const(*mesh_).peer(peer).lanes().is_settled()) return;
  endpoint_->set_quiet(host_->is_whole_world());
  if (std::exchange(agreeing_, true)) return;
  offer_memory(groups_.front(), [this](Result<void> result) { end_formation(result ? std::nullopt : std::optional(result.error())); });
}

void NodeCore::end_formation(std::optional<Error> error) {
  if (formed_.is_done()) return;
  formation_error_ = std::move(error);
  formed_.complete();
}

}  // namespace nexar::runtime
