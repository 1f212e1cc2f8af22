// The calling half of the service.
#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "rpc/errors.h"
#include "rpc/service.h"

namespace nexar::rpc {
namespace {

// What is left until the deadline, rounded up; 0 for none.
std::uint32_t milliseconds_until(base::Time deadline, base::Time now) {
  if (deadline == base::Time::max()) return 0;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now).count();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(left, 1, std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace

void Service::start(Call& call) {
  const auto end = [&](const Error& error) { std::exchange(call.done, nullptr)(error); };
  if (closing_) return end(not_made(call, *closing_));
  if (call.peer != mesh_.self() && mesh_.gone(call.peer)) return end(not_made(call, *mesh_.gone(call.peer)));
  const base::Time now = loop_.now();  // of the turn: nearer to when its caller began than a clock that is read after others' work
  if (auto admitted = calls_.admit(now, call); !admitted) return end(not_made(call, admitted.error()));
  ++counters_.calls;
  arm(call.deadline);
  if (call.peer == mesh_.self())
    call_self(call);
  else
    send_request(call, now);
}

void Service::send_request(Call& call, base::Time now) {
  const std::uint32_t deadline_ms = milliseconds_until(call.deadline, now);
  if (call.arguments.size() <= wire::kEagerBytesMax) {
    const wire::RpcRequest request{.call = call.id, .function = call.function, .deadline_ms = deadline_ms};
    const wire::Scope scope{.group = call.scope, .epoch = mesh_.epoch()};
    return frames(call.peer).request(call.id, wire::header_of(request, scope, static_cast<std::uint32_t>(call.arguments.size())),
                                     call.arguments);
  }
  call.sending.region = {call.arguments.data(), call.arguments.size()};
  call.sending.transfer = mesh_.bodies(call.peer).offer(
      {.owner = {.group = call.scope, .key = call.function}, .regions = std::span(&call.sending.region, 1), .done = [&call](Result<void>) {
         call.sending.transfer = 0;  // when it has failed, the callee says why, or is gone
       }});
  frames(call.peer).say(wire::RpcLargeRequest{.call = call.id,
                                              .function = call.function,
                                              .deadline_ms = deadline_ms,
                                              .transfer = call.sending.transfer,
                                              .bytes = call.arguments.size()},
                        call.scope);
}

// In a turn of its own, as if it had travelled: the caller is not called back from inside its call.
void Service::call_self(const Call& call) {
  const Request request{call.peer, call.scope, call.id, call.function, milliseconds_until(call.deadline, loop_.now())};
  std::vector<std::byte> arguments(call.arguments.begin(), call.arguments.end());
  loop_.post([this, alive = std::weak_ptr<bool>(alive_), request, arguments = std::move(arguments)]() mutable {
    if (!alive.expired() && calls_.find(request.from, request.call) != nullptr) static_cast<void>(on_request(request, arguments));
  });
}

void Service::on_reply(Rank from, std::uint64_t id, std::vector<std::byte> result) {
  Call* call = calls_.find(from, id);
  if (call == nullptr) {
    ++counters_.late_answers;
    return;
  }
  finish(*call, std::move(result));
}

Result<void> Service::on_large_reply(Rank from, std::uint64_t scope, const wire::RpcLargeReply& reply) {
  Call* call = calls_.find(from, reply.call);
  if (call == nullptr || call->receiving.transfer != 0) {
    ++counters_.late_answers;
    return mesh_.bodies(from).decline(reply.transfer, scope);
  }
  if (auto admitted = calls_.admit_result(*call, reply.bytes); !admitted) {
    finish(*call, answered(*call, wire::RpcStatus::kRefused, admitted.error()));
    return mesh_.bodies(from).decline(reply.transfer, scope);
  }
  call->receiving.bytes.resize(static_cast<std::size_t>(reply.bytes));
  call->receiving.transfer = reply.transfer;
  const auto arrived = [this, call](Result<void> result) {
    call->receiving.transfer = 0;
    if (result)
      finish(*call, std::move(call->receiving.bytes));
    else
      finish(*call, answered(*call, wire::RpcStatus::kCancelled, result.error()));
  };
  return mesh_.bodies(from).accept(
      reply.transfer, {.owner = {.group = scope, .key = call->function}, .bytes = reply.bytes, .sink = &call->receiving, .done = arrived});
}

void Service::on_failure(Rank from, const wire::RpcFailure& failure) {
  Call* call = calls_.find(from, failure.call);
  if (call == nullptr) {
    ++counters_.late_answers;
    return;
  }
  finish(*call, answered(*call, failure.status, failure.error));
}

void Service::cancel(Call& call) {
  if (call.id == 0) return;
  tell_cancelled(call);
  finish(call, cancelled(call));
}

// A request that has not gone does not go; of one that has, the callee is told.
void Service::tell_cancelled(Call& call) {
  if (call.peer == mesh_.self()) return on_cancel(call.peer, call.id);
  if (!frames(call.peer).take_back(call.id) && !mesh_.gone(call.peer)) frames(call.peer).say(wire::RpcCancel{.call = call.id}, call.scope);
}

void Service::drop_transfers(Call& call) {
  if (const std::uint64_t transfer = std::exchange(call.sending.transfer, 0); transfer != 0) mesh_.bodies(call.peer).take_back(transfer);
  if (const std::uint64_t transfer = std::exchange(call.receiving.transfer, 0); transfer != 0) mesh_.bodies(call.peer).stop(transfer);
}

// The caller may be gone after this.
void Service::finish(Call& call, Result<std::vector<std::byte>> result) {
  if (call.peer != mesh_.self()) {
    frames(call.peer).take_back(call.id);
    drop_transfers(call);
  }
  calls_.remove(call);
  std::exchange(call.done, nullptr)(std::move(result));
}

}  // namespace nexar::rpc
