// The serving half of the service.
#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "rpc/handler_run.h"
#include "rpc/service.h"

namespace nexar::rpc {
namespace {

// The token of quick handlers. Nobody owns it, so that nobody counts.
std::shared_ptr<const std::atomic<bool>> never_cancelled() {
  static constexpr std::atomic<bool> kNever = false;
  return {std::shared_ptr<const void>(), &kNever};
}

}  // namespace

base::Time Service::deadline_of(const Request& request) {
  return request.deadline_ms == 0 ? base::Time::max() : loop_.now() + std::chrono::milliseconds(request.deadline_ms);
}

// Everything that can be said of a call before its arguments are here. Nothing when it was refused, and its caller told; an error ends the
// link.
Result<std::shared_ptr<Served>> Service::take_on(const Request& request, const Callee& callee, std::uint64_t bytes) {
  const std::shared_ptr<Served> none;
  Result<std::shared_ptr<Served>> admitted = served_.admit(request.from, request.call, bytes, deadline_of(request));
  if (!admitted) {
    if (admitted.error().code() != ErrorCode::kOverloaded) return admitted;
    refuse(request, wire::RpcStatus::kOverloaded, admitted.error());
    return none;
  }
  Served& served = **admitted;
  served.scope = request.scope;
  served.function = callee.function;
  served.caller_in_group = callee.caller;
  served.clock_deadline = to_clock(served.deadline);
  arm(served.deadline);
  return admitted;
}

void Service::refuse(const Request& request, wire::RpcStatus status, const Error& error) {
  ++counters_.refused;
  fail(request.from, request.scope, request.call, status, error);
}

// The function of a request and its caller's rank there, or an answer that says why not.
std::optional<Service::Callee> Service::find_callee(const Request& request) {
  if (closing_) return refuse(request, wire::RpcStatus::kRefused, *closing_), std::nullopt;
  const std::shared_ptr<const Registered>* found = registry_.find(request.scope, request.function);
  if (found == nullptr) {
    refuse(request, wire::RpcStatus::kUnknownFunction, Error(ErrorCode::kUnsupported, "there is no such function"));
    return std::nullopt;
  }
  const Registered& function = **found;
  const std::optional<Rank> caller = function.rank_of(request.from);
  if (!caller) {
    refuse(request, wire::RpcStatus::kRefused,
           Error(ErrorCode::kInvalidArgument,
                 fmt::format("rank {} is no member of the group that function {} belongs to", request.from, function.name)));
    return std::nullopt;
  }
  return Callee{*found, *caller};
}

// A quick handler leaves the arguments where they are, and their memory to the next call.
Result<void> Service::on_request(const Request& request, std::vector<std::byte>& arguments) {
  const std::optional<Callee> callee = find_callee(request);
  if (!callee) return {};
  if (callee->function->quick) return run_quick(request, *callee, arguments);
  Result<std::shared_ptr<Served>> served = take_on(request, *callee, arguments.size());
  if (!served) return std::move(served).error();
  if (*served == nullptr) return {};
  (*served)->arguments = std::move(arguments);
  submit(*served);
  return {};
}

Result<void> Service::on_large_request(const Request& request, std::uint64_t transfer, std::uint64_t bytes) {
  const std::optional<Callee> callee = find_callee(request);
  if (!callee) return mesh_.bodies(request.from).decline(transfer, request.scope);
  Result<std::shared_ptr<Served>> taken = take_on(request, *callee, bytes);
  if (!taken) return std::move(taken).error();
  const std::shared_ptr<Served>& served = *taken;
  if (served == nullptr) return mesh_.bodies(request.from).decline(transfer, request.scope);
  served->receiving.bytes.resize(static_cast<std::size_t>(bytes));
  served->receiving.transfer = transfer;
  const auto arrived = [this, raw = served.get()](const Result<void>& result) {
    const std::shared_ptr<Served> whole = raw->shared_from_this();
    whole->receiving.transfer = 0;
    if (!result) return remove(*whole);  // its caller took them back
    whole->arguments = std::move(whole->receiving.bytes);
    if (!whole->function->quick) return submit(whole);
    run_handler(*whole);
    answer(whole);
  };
  return mesh_.bodies(request.from)
      .accept(transfer,
              {.owner = {.group = request.scope, .key = request.function}, .bytes = bytes, .sink = &served->receiving, .done = arrived});
}

// On the engine, where nexar refuses to be called.
Result<void> Service::run_quick(const Request& request, const Callee& callee, base::ByteView arguments) {
  ++counters_.served;
  const RpcContext context(callee.caller, never_cancelled(), to_clock(deadline_of(request)));
  Result<std::vector<std::byte>> result = run_guarded(*callee.function, context, arguments);
  if (!result) {
    fail(request.from, request.scope, request.call, wire::RpcStatus::kHandlerError, result.error());
  } else if (result->size() <= wire::kEagerBytesMax || request.from == mesh_.self()) {
    reply(request.from, request.scope, request.call, *std::move(result));
  } else {  // it waits for its grant, and is held as that of any other call
    Result<std::shared_ptr<Served>> held = take_on(request, callee, 0);
    if (!held) return std::move(held).error();
    if (*held != nullptr) reply_large(*held, *std::move(result));
  }
  return {};
}

void Service::submit(const std::shared_ptr<Served>& served) {
  served->state = Served::State::kWithWorkers;
  if (auto queued = pool_->submit(served); !queued) {
    ++counters_.refused;
    fail(served->caller, served->scope, served->id, wire::RpcStatus::kOverloaded, queued.error());
    remove(*served);
  }
}

void Service::take_finished() {
  for (const std::shared_ptr<Served>& served : pool_->take_finished()) answer(served);
}

void Service::answer(const std::shared_ptr<Served>& served) {
  served->arguments = {};
  if (served->refused) {
    ++counters_.refused;
    if (!served->answered)
      fail(served->caller, served->scope, served->id, wire::RpcStatus::kOverloaded,
           Error(ErrorCode::kOverloaded, "all workers and spare ones wait (rpc_workers, rpc_spare_workers)"));
    return remove(*served);
  }
  ++counters_.served;
  Result<std::vector<std::byte>>& outcome = *served->outcome;
  if (served->answered) return remove(*served);
  if (!outcome) {
    fail(served->caller, served->scope, served->id, wire::RpcStatus::kHandlerError, outcome.error());
    return remove(*served);
  }
  if (outcome->size() > wire::kEagerBytesMax && served->caller != mesh_.self()) return reply_large(served, *std::move(outcome));
  reply(served->caller, served->scope, served->id, *std::move(outcome));
  remove(*served);
}

void Service::reply(Rank to, std::uint64_t scope, std::uint64_t call, std::vector<std::byte> result) {
  if (to == mesh_.self()) return on_reply(to, call, std::move(result));
  const wire::Header header =
      wire::header_of(wire::RpcReply{.call = call}, {.group = scope, .epoch = mesh_.epoch()}, static_cast<std::uint32_t>(result.size()));
  frames(to).answer(header, std::move(result));
}

void Service::reply_large(const std::shared_ptr<Served>& served, std::vector<std::byte> result) {
  served->state = Served::State::kAnswering;
  served_.hold(*served, result.size());
  served->sending.bytes = std::move(result);
  served->sending.region = {served->sending.bytes.data(), served->sending.bytes.size()};
  served->sending.transfer = mesh_.bodies(served->caller)
                                 .offer({.owner = {.group = served->scope, .key = served->id},
                                         .regions = std::span(&served->sending.region, 1),
                                         .done = [this, served = served.get()](Result<void>) {
                                           served->sending.transfer = 0;
                                           remove(*served);
                                         }});
  frames(served->caller)
      .say(wire::RpcLargeReply{.call = served->id, .transfer = served->sending.transfer, .bytes = served->sending.bytes.size()},
           served->scope);
}

void Service::fail(Rank to, std::uint64_t scope, std::uint64_t call, wire::RpcStatus status, const Error& error) {
  const wire::RpcFailure failure{.call = call, .status = status, .error = error};
  if (to == mesh_.self()) return on_failure(to, failure);
  if (!mesh_.gone(to)) frames(to).say(failure, scope);
}

void Service::on_cancel(Rank from, std::uint64_t id) {
  const std::shared_ptr<Served> served = served_.find(from, id);
  if (served == nullptr) return;  // its answer is on the way, and will be dropped
  served->answered = true;
  give_up(served);
}

// Nobody waits for it any more: it ends now, or when its handler has returned.
void Service::give_up(const std::shared_ptr<Served>& served) {
  served->cancelled.store(true, std::memory_order_relaxed);
  if (served->state == Served::State::kWithWorkers && !pool_->withdraw(served)) return;
  if (const std::uint64_t transfer = std::exchange(served->receiving.transfer, 0); transfer != 0)
    mesh_.bodies(served->caller).stop(transfer);
  if (const std::uint64_t transfer = std::exchange(served->sending.transfer, 0); transfer != 0)
    mesh_.bodies(served->caller).take_back(transfer);
  remove(*served);
}

void Service::remove(const Served& served) {
  served_.remove(served);
  if (served_.size() == 0 && drained_) std::exchange(drained_, nullptr)();
}

}  // namespace nexar::rpc
