// Calls of a node: those that its program makes, and the functions that it serves.
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "runtime/node_core.h"

namespace nexar::runtime {
namespace {

// How long close() waits before it says that handlers still run, and how long for answers to reach those who asked.
constexpr std::chrono::seconds kPatience(5);

}  // namespace

// While there are functions the engine is driven at once, also when nobody waits.
Result<void> NodeCore::serve(std::uint64_t scope, const Function& function, rpc::Registered registered) {
  const CallGate::Pass pass(gate_);
  if (!pass) return closed_error();
  Result<void> added;
  engine_->run([&] {
    if (closed_.load(std::memory_order_acquire)) {
      added = closed_error();
      return;
    }
    const bool first = rpc_->registry().is_empty();
    added = rpc_->registry().add(scope, function, std::move(registered));
    if (added && first) engine_->need_background(true);
  });
  return added;
}

Result<void> NodeCore::withdraw(std::uint64_t scope, const Function& function) {
  const CallGate::Pass pass(gate_);
  if (!pass) return closed_error();
  bool removed = false;
  engine_->run([&] {
    removed = rpc_->registry().remove(scope, function);
    if (removed && rpc_->registry().is_empty()) engine_->need_background(false);
  });
  if (removed) return {};
  return Error(ErrorCode::kInvalidArgument, fmt::format("function {} is not served here", function.text()));
}

void NodeCore::begin_call(OperationState& operation) {
  operation.call.done = [this, &operation](Result<std::vector<std::byte>> result) {
    if (!result) return finish(operation, std::move(result).error());
    operation.owned = *std::move(result);
    finish(operation, Status{operation.owned.size(), operation.call.peer, 0});
  };
  rpc_->start(operation.call);
}

// Handlers are the program's, and use what is the program's: the node is not closed while one runs. What they captured is let go, the node
// itself perhaps.
void NodeCore::finish_handlers() {
  rpc_->stop_workers(kPatience, [this](std::size_t running) {
    log_.warning("runtime", "a node cannot close while handlers run; they can ask RpcContext::cancelled()", {{"running", running}});
  });
  Completion answered;
  engine_->run([&] { rpc_->when_answered([&] { answered.complete(); }); });
  engine_->wait(answered, deadline(kPatience));
  engine_->run([this] {
    rpc_->when_answered(nullptr);
    if (!rpc_->registry().is_empty()) engine_->need_background(false);
    rpc_->registry().clear();
  });
}

RpcCounters NodeCore::rpc_counters() const {
  const rpc::ServiceCounters now = rpc_->counters();
  return {now.calls, now.served, now.refused, now.late_answers, now.calling, now.serving, now.serving_bytes, now.threads};
}

}  // namespace nexar::runtime
