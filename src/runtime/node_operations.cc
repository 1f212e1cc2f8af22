// Operations of a node: started by callers, run by the engine.
#include <utility>

#include <fmt/format.h>

#include "base/units.h"
#include "runtime/node_core.h"
#include "runtime/program.h"

namespace nexar::runtime {
namespace {

std::string describe(const OperationState& operation) {
  switch (operation.kind) {
    case OperationState::Kind::kSend: return fmt::format("a send to rank {}", operation.send.peer);
    case OperationState::Kind::kCall: return fmt::format("a call of {} on rank {}", operation.call.name, operation.call.peer);
    case OperationState::Kind::kCompound: return "an operation of several parts";
    default: break;
  }
  const Rank source = operation.receive.source;
  return source == kAnySource ? "a receive from any rank" : fmt::format("a receive from rank {}", source);
}

}  // namespace

void NodeCore::start_and_stay(OperationState& operation) {
  engine_->post_and_stay([this, &operation] { begin(operation); });
}

void NodeCore::start(OperationState& operation) {
  const CallGate::Pass pass(gate_);
  if (!pass) {
    operation.result.emplace(closed_error());
    operation.completion.complete();
    return;
  }
  operation.unattended = true;
  engine_->need_background(true);
  engine_->post([this, &operation] { begin(operation); });
}

Result<Status> NodeCore::run(OperationState& operation, std::optional<std::chrono::nanoseconds> limit) {
  const CallGate::Pass pass(gate_);
  if (!pass) return closed_error();
  start_and_stay(operation);
  return wait_inside(operation, limit);
}

Result<Status> NodeCore::run_both(OperationState& receive, OperationState& send, std::optional<std::chrono::nanoseconds> limit) {
  const CallGate::Pass pass(gate_);
  if (!pass) return closed_error();
  start_and_stay(receive);
  start_and_stay(send);
  Result<Status> received = wait_inside(receive, limit);
  if (!received) cancel_inside(send, received.error());
  Result<Status> sent = wait_inside(send, limit);
  if (!sent && received) return std::move(sent).error();
  return received;
}

// Without a pass the node is about to stop, and with it everything that was started has ended.
Result<Status> NodeCore::wait(OperationState& operation, std::optional<std::chrono::nanoseconds> limit) {
  const CallGate::Pass pass(gate_);
  if (pass) return wait_inside(operation, limit);
  gate_.wait_for_exit();
  return *operation.result;
}

Result<Status> NodeCore::wait_inside(OperationState& operation, std::optional<std::chrono::nanoseconds> limit) {
  const bool is_collective = operation.kind == OperationState::Kind::kCollective;
  if (!engine_->wait(operation.completion, deadline(limit), is_collective ? operation.group->spins() : 1) && is_collective) {
    cancel_inside(operation,
                  Error(ErrorCode::kTimeout, fmt::format("rank {} waited for {} no longer than {}", operation.group->rank,
                                                         operation.collective->descriptor.to_text(), base::format_duration(*limit)))
                      .with_rank(operation.group->rank));
  } else if (!operation.completion.is_done() && operation.kind == OperationState::Kind::kCompound) {
    cancel_inside(operation, Error(ErrorCode::kTimeout, fmt::format("rank {} waited for a collective of {} parts no longer than {}", rank_,
                                                                    operation.parts.size(), base::format_duration(*limit)))
                                 .with_rank(rank_));
  } else if (!operation.completion.is_done() && operation.kind == OperationState::Kind::kProgram) {
    cancel_inside(operation, Error(ErrorCode::kTimeout, fmt::format("rank {} waited for {} no longer than {}", operation.group->rank,
                                                                    operation.program->name(), base::format_duration(*limit)))
                                 .with_rank(operation.group->rank));
  } else if (!operation.completion.is_done()) {
    cancel_inside(operation,
                  Error(ErrorCode::kTimeout, fmt::format("{} did not end within {}", describe(operation), base::format_duration(*limit))));
  }
  return *operation.result;
}

void NodeCore::cancel(OperationState& operation, const Error& verdict) {
  const CallGate::Pass pass(gate_);
  if (pass)
    cancel_inside(operation, verdict);
  else
    gate_.wait_for_exit();
}

// A collective that has lent memory ends when nobody reads it any more.
void NodeCore::cancel_inside(OperationState& operation, const Error& verdict) {
  engine_->run([&] {
    if (!operation.active) return;
    operation.verdict = verdict;
    stop(operation);
  });
  engine_->wait(operation.completion);
}

void NodeCore::set_callback(OperationState& operation, std::function<void(const Result<Status>&)> callback) {
  const CallGate::Pass pass(gate_);
  if (!pass) {
    gate_.wait_for_exit();
    return callback(*operation.result);
  }
  engine_->run([&] {
    operation.callback = std::move(callback);
    if (!operation.active) std::exchange(operation.callback, nullptr)(*operation.result);
  });
}

Result<int> NodeCore::descriptor(OperationState& operation) {
  Result<int> fd = -1;
  const auto give = [&] {
    if (!operation.event) {
      Result<io::EventDescriptor> made = io::EventDescriptor::open();
      if (!made) {
        fd = std::move(made).error();
        return;
      }
      operation.event = *std::move(made);
      if (!operation.active) operation.event->signal();
    }
    fd = operation.event->fd();
  };
  const CallGate::Pass pass(gate_);
  if (pass) {
    engine_->run(give);
  } else {
    gate_.wait_for_exit();
    give();
  }
  return fd;
}

std::optional<std::size_t> NodeCore::wait_any(std::span<OperationState* const> operations, std::optional<std::chrono::nanoseconds> limit) {
  std::vector<Completion*> completions;
  completions.reserve(operations.size());
  for (OperationState* operation : operations) completions.push_back(&operation->completion);
  const CallGate::Pass pass(gate_);
  if (pass) return engine_->wait_any(completions, deadline(limit));
  gate_.wait_for_exit();
  return 0;  // all have ended
}

Result<std::optional<Status>> NodeCore::probe(mesh::GroupId group, Rank from, std::optional<Tag> tag) {
  const CallGate::Pass pass(gate_);
  if (!pass) return closed_error();
  std::optional<Status> found;
  std::optional<Error> over;
  engine_->run([&] {
    found = mesh_->probe(group, from, tag);
    if (!found) over = mesh_->verdict();
  });
  if (over) return *over;
  return found;
}

void NodeCore::begin(OperationState& operation) {
  if (closed_.load(std::memory_order_acquire)) return finish(operation, closed_error());
  if (operation.kind == OperationState::Kind::kProgram) return begin_program(operation);
  enter(operation);
  if (operation.kind == OperationState::Kind::kSend) {
    operation.send.done = [this, &operation](Result<void> result) {
      if (result)
        finish(operation, Status{operation.send.bytes, operation.send.peer, operation.send.tag});
      else
        finish(operation, std::move(result).error());
    };
    mesh_->send(operation.send);
  } else if (operation.kind == OperationState::Kind::kCollective) {
    if (!line_up(operation)) begin_collective(operation);
  } else if (operation.kind == OperationState::Kind::kCall) {
    begin_call(operation);
  } else {
    operation.receive.done = [this, &operation](Result<Status> result) { finish(operation, std::move(result)); };
    mesh_->receive(operation.receive);
  }
}

// What ends when the node is closed.
void NodeCore::enter(OperationState& operation) {
  operation.active = true;
  operation.active_at = active_.size();
  active_.push_back(&operation);
}

void NodeCore::begin_collective(OperationState& operation) {
  operation.collective->done = [this, &operation](Result<void> result) {
    finish(operation, result ? Result<Status>(Status{}) : Result<Status>(std::move(result).error()));
  };
  collectives_->begin(*operation.collective);
}

void NodeCore::stop(OperationState& operation) {
  if (operation.kind == OperationState::Kind::kCompound)
    stop_parts(operation);
  else if (operation.kind == OperationState::Kind::kProgram)
    stop_program(operation);
  else if (operation.lined)
    withdraw_from_line(operation);
  else if (operation.kind == OperationState::Kind::kSend)
    mesh_->cancel(operation.send);
  else if (operation.kind == OperationState::Kind::kCollective)
    collectives_->cancel(*operation.collective, operation.verdict.value_or(Error(ErrorCode::kCancelled, "the operation was cancelled")));
  else if (operation.kind == OperationState::Kind::kCall)
    rpc_->cancel(operation.call);
  else
    mesh_->cancel(operation.receive);
}

void NodeCore::finish(OperationState& operation, Result<Status> result) {
  const bool listed =
      operation.kind != OperationState::Kind::kCompound && operation.kind != OperationState::Kind::kProgram;  // their parts are
  if (std::exchange(operation.active, false) && listed) {
    active_.back()->active_at = operation.active_at;
    active_[operation.active_at] = active_.back();
    active_.pop_back();
  }
  if (operation.unattended) engine_->need_background(false);
  if (operation.collective != nullptr && operation.collective->shared != nullptr) operation.collective->shared->owner().remove_reason();
  if (result && operation.group != nullptr && operation.kind != OperationState::Kind::kProgram)
    result->source = operation.group->rank_of(result->source).value_or(result->source);
  const bool ours = operation.kind != OperationState::Kind::kCollective;  // of a collective the error has more to say
  if (!result && ours && result.error().code() == ErrorCode::kCancelled && operation.verdict)
    operation.result.emplace(*operation.verdict);
  else
    operation.result.emplace(std::move(result));
  if (operation.event) operation.event->signal();
  if (operation.callback) std::exchange(operation.callback, nullptr)(*operation.result);
  OperationState* whole = operation.whole;
  operation.completion.complete();  // the caller may be gone after this
  if (whole != nullptr) on_part_ended(*whole);
}

}  // namespace nexar::runtime
