#include "rpc/service.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "io/thread.h"
#include "rpc/errors.h"
#include "rpc/handler_run.h"

namespace nexar::rpc {

Service::Service(io::Loop& loop, mesh::Mesh& mesh, const Limits& limits)
    : loop_(loop),
      mesh_(mesh),
      calls_(mesh.size(), limits.peer),
      served_(mesh.size(), limits.peer),
      timer_(loop, [this] { tick(); }),
      forks_at_start_(io::forks()),
      pool_(std::make_unique<WorkerPool>(limits.pool, run_handler, [this] {
        loop_.post([this, alive = std::weak_ptr<bool>(alive_)] {
          if (!alive.expired()) take_finished();
        });
      })) {
  frames_.reserve(static_cast<std::size_t>(mesh.size()));
  for (Rank peer = 0; peer < mesh.size(); ++peer) frames_.emplace_back(mesh, peer, limits.peer);
  mesh_.set_rpc(this);
}

// A child of fork has none of the threads, and can neither join them nor destroy what they sleep on.
Service::~Service() {
  mesh_.set_rpc(nullptr);
  if (io::forks() == forks_at_start_) return;
  static auto& forgotten = *new std::vector<std::unique_ptr<WorkerPool>>();  // reachable, so that no leak checker objects
  forgotten.push_back(std::move(pool_));
}

// One line for each type: decode it, then act.
Result<void> Service::on_rpc_frame(Rank from, const wire::Header& header, std::vector<std::byte>& payload) {
  switch (header.type) {
    case wire::FrameType::kRpcRequest: {
      const Result<wire::RpcRequest> m = wire::read_header<wire::RpcRequest>(header);
      return m ? on_request({from, header.group, m->call, m->function, m->deadline_ms}, payload) : Result<void>(m.error());
    }
    case wire::FrameType::kRpcLargeRequest: {
      const auto m = wire::decode_frame<wire::RpcLargeRequest>(header, payload);
      return m ? on_large_request({from, header.group, m->call, m->function, m->deadline_ms}, m->transfer, m->bytes)
               : Result<void>(m.error());
    }
    case wire::FrameType::kRpcReply: on_reply(from, header.id, std::move(payload)); return {};
    case wire::FrameType::kRpcLargeReply: {
      const auto m = wire::decode_frame<wire::RpcLargeReply>(header, payload);
      return m ? on_large_reply(from, header.group, *m) : Result<void>(m.error());
    }
    case wire::FrameType::kRpcFailure: {
      const auto m = wire::decode_frame<wire::RpcFailure>(header, payload);
      if (!m) return m.error();
      on_failure(from, *m);
      return {};
    }
    case wire::FrameType::kRpcCancel: on_cancel(from, header.id); return {};
    default: break;
  }
  return Error(ErrorCode::kRefused, fmt::format("rank {} sent a {} frame as a call", from, wire::to_string(header.type)));
}

void Service::on_rpc_room(Rank to) { frames(to).drain(); }

void Service::on_rpc_gone(Rank peer, const Error& why) {
  frames(peer).clear();
  for (const std::shared_ptr<Served>& served : served_.of(peer)) {
    served->answered = true;
    give_up(served);
  }
  std::vector<Call*> ended = calls_.to(peer);
  for (Call* call : ended) finish(*call, peer_gone(*call, why));
}

void Service::end_all(const Error& verdict) {
  closing_ = verdict;
  for (const std::shared_ptr<Served>& served : served_.all()) {
    served->answered = true;
    give_up(served);
  }
  for (Call* call : calls_.all()) finish(*call, verdict);
}

void Service::begin_close(const Error& why) {
  closing_ = why;
  for (const std::shared_ptr<Served>& served : served_.all()) {
    if (served->state == Served::State::kAnswering) continue;
    const bool runs = served->state == Served::State::kWithWorkers && !pool_->withdraw(served);
    served->cancelled.store(true, std::memory_order_relaxed);
    if (runs) continue;
    if (!std::exchange(served->answered, true)) fail(served->caller, served->scope, served->id, wire::RpcStatus::kRefused, why);
    if (served->receiving.transfer != 0) mesh_.bodies(served->caller).stop(std::exchange(served->receiving.transfer, 0));
    remove(*served);
  }
}

void Service::stop_workers(std::chrono::nanoseconds patience, const std::function<void(std::size_t)>& slow) { pool_->stop(patience, slow); }

void Service::when_answered(std::function<void()> drained) {
  take_finished();
  drained_ = std::move(drained);
  if (served_.size() == 0 && drained_) std::exchange(drained_, nullptr)();
}

// Deadlines: of calls that were made, which end, and of calls that are served, whose handlers are told.
void Service::tick() {
  armed_for_ = base::Time::max();
  const base::Time now = loop_.now();
  for (const std::shared_ptr<Served>& served : served_.take_due(now)) {
    if (!std::exchange(served->answered, true))
      fail(served->caller, served->scope, served->id, wire::RpcStatus::kDeadlinePassed,
           Error(ErrorCode::kTimeout, "the deadline has passed"));
    give_up(served);
  }
  while (Call* call = calls_.due(now)) {
    tell_cancelled(*call);
    finish(*call, timed_out(*call));
  }
  arm(std::min(calls_.next_deadline(), served_.next_deadline()));
}

void Service::arm(base::Time time) {
  if (time >= armed_for_) return;
  armed_for_ = time;
  timer_.set(time);
}

ServiceCounters Service::counters() const {
  ServiceCounters counters = counters_;
  counters.calling = calls_.size();
  counters.serving = served_.size();
  counters.serving_bytes = served_.bytes();
  counters.threads = pool_->threads();
  return counters;
}

}  // namespace nexar::rpc
