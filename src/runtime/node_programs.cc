// Operations that make several calls, and the order of calls that they keep.
//
//   line of a group   | program, first | collective | program | collective |
//                       begins calls     begins when all before it have begun
//
// A group has a line only while it has a program that has not begun all its calls; elsewhere calls begin as they come. A program that calls
// no collectives has begun all of them from the first, and stands in no line.
#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "runtime/collective_state.h"
#include "runtime/node_core.h"
#include "runtime/program.h"

namespace nexar::runtime {
namespace {

// How long a device waits to be asked where nobody spins: as long as a thread that waits would spin for it.
constexpr std::chrono::microseconds kAskDeviceAfter(50);

}  // namespace

// Turns of the loop go on with programs.
class NodeCore::ProgramPoller final : public io::Poller {
 public:
  explicit ProgramPoller(NodeCore& core) : core_(core) {}
  bool poll() override { return core_.step_programs(); }

 private:
  NodeCore& core_;
};

// Until it leaves the line, calls of the group go to the engine.
Operation NodeCore::start_program(const std::shared_ptr<NodeCore>& core, GroupRecord& group, std::shared_ptr<Program> program) {
  auto state = std::make_shared<OperationState>();
  state->kind = OperationState::Kind::kProgram;
  state->group = &group;
  state->program = std::move(program);
  const auto failed = [&](Error error) {
    state->result.emplace(std::move(error));
    state->completion.complete();
    return Operation(std::move(state));
  };
  if (auto checked = core->check_call(state->program->name()); !checked) return failed(std::move(checked).error());
  const bool in_line = !state->program->has_begun();
  std::optional<CallTurn> turn;
  if (in_line && !turn.emplace(group)) return failed(concurrent(group, state->program->name()));
  state->core = core;
  if (in_line && group.direct != nullptr) group.direct->owner().add_reason();
  core->start(*state);
  return Operation(std::move(state));
}

void NodeCore::begin_program(OperationState& operation) {
  operation.active = true;
  const GroupRecord& group = *operation.group;
  const bool in_line = !operation.program->has_begun();
  programs_.running.push_back({operation.program, &operation, group.id, group.direct, in_line});
  if (in_line) programs_.lines[group.id].push_back({.program = operation.program});
  if (programs_.poller == nullptr) {
    programs_.poller = std::make_unique<ProgramPoller>(*this);
    programs_.timer = std::make_unique<io::Timer>(*loop_, [this] { step_programs(); });
    loop_->add_poller(*programs_.poller);
  }
  step_programs();
}

bool NodeCore::step_programs() {
  if (programs_.running.empty() || programs_.stepping) return false;
  programs_.stepping = true;
  bool moved = false;
  bool polled = false;
  for (auto one = programs_.running.begin(); one != programs_.running.end();) {
    Program& program = *one->program;
    const bool first = one->in_line && programs_.lines[one->group].front().program == one->program;
    moved = program.step(first) || moved;
    if (one->operation != nullptr && program.result()) {
      OperationState& ended = *std::exchange(one->operation, nullptr);
      finish(ended, *program.result());
    }
    if (one->in_line && program.has_begun()) {
      leave_line(*one);
      moved = true;
    }
    polled = program.is_polled() || polled;
    one = one->operation == nullptr && !one->in_line ? programs_.running.erase(one) : std::next(one);
  }
  programs_.stepping = false;
  if (!polled)
    programs_.timer->cancel();
  else if (!programs_.timer->is_set())
    programs_.timer->set(loop_->now() + kAskDeviceAfter);
  if (programs_.running.empty() && programs_.over != nullptr) std::exchange(programs_.over, nullptr)->complete();
  return moved;
}

// What stands behind it begins, up to the next program, which is then first.
void NodeCore::leave_line(RunningProgram& one) {
  one.in_line = false;
  const auto line = programs_.lines.find(one.group);
  line->second.pop_front();
  while (!line->second.empty() && line->second.front().program == nullptr) {
    InLine next = std::move(line->second.front());
    line->second.pop_front();
    if (next.visitor)
      next.visitor();
    else if (next.withdrawn != nullptr)
      collectives_->begin(*next.withdrawn);
    else
      begin_lined(*next.call, next.since);
  }
  if (line->second.empty()) programs_.lines.erase(line);
  if (one.direct != nullptr) one.direct->owner().remove_reason();  // last: until here no caller's thread takes a number
}

void NodeCore::begin_lined(OperationState& operation, base::Time since) {
  operation.lined = false;
  if (std::optional<base::Duration>& deadline = operation.collective->deadline)
    deadline = std::max<base::Duration>(*deadline - (loop_->now() - since), base::Duration(1));
  begin_collective(operation);
}

// Whether a collective has to wait for its turn, and does so now.
bool NodeCore::line_up(OperationState& operation) {
  const auto line = programs_.lines.find(operation.collective->group);
  const bool has_number = operation.collective->begun != nullptr;  // which a caller's thread has taken
  if (line == programs_.lines.end() || has_number) return false;
  operation.lined = true;
  line->second.push_back({.call = &operation, .since = loop_->now()});
  return true;
}

// It ends now, and its place in the order of calls is declined when its turn comes.
void NodeCore::withdraw_from_line(OperationState& operation) {
  const collective::Call& call = *operation.collective;
  for (InLine& place : programs_.lines.at(call.group)) {
    if (place.call != &operation) continue;
    place.call = nullptr;
    place.withdrawn = std::make_unique<collective::Call>();
    place.withdrawn->group = call.group;
    place.withdrawn->descriptor = call.descriptor;
    place.withdrawn->refusal = operation.verdict.value_or(Error(ErrorCode::kCancelled, "the operation was cancelled"));
    place.withdrawn->done = [](const Result<void>&) {};
    operation.lined = false;
    return finish(operation, *place.withdrawn->refusal);
  }
}

// Begins a call of a program, whose turn it is.
void NodeCore::begin_for_program(OperationState& operation) {
  if (operation.kind != OperationState::Kind::kCollective) return begin(operation);
  if (closed_.load(std::memory_order_acquire)) return finish(operation, closed_error());
  enter(operation);
  begin_collective(operation);
}

void NodeCore::stop_for_program(Operation& call, const Error& reason) {
  OperationState* operation = call.state_.get();
  if (operation == nullptr || !operation->active) return;
  operation->verdict = reason;
  operation->core->stop(*operation);
}

void NodeCore::stop_program(OperationState& operation) {
  operation.program->cancel(operation.verdict.value_or(Error(ErrorCode::kCancelled, "the operation was cancelled")));
  step_programs();
}

void NodeCore::cancel_programs(const Error& error) {
  for (RunningProgram& one : programs_.running) one.program->cancel(error);
  step_programs();
}

void NodeCore::wait_for_programs() {
  Completion over;
  engine_->run([&] {
    if (programs_.running.empty())
      over.complete();
    else
      programs_.over = &over;
  });
  engine_->wait(over);
}

Sequence NodeCore::next_sequence(mesh::GroupId group) {
  const CallGate::Pass pass(gate_);
  if (!pass) return 0;
  Sequence next = 0;
  Completion known;
  const auto look = [&] {
    next = collectives_->last_entered(group) + 1;
    known.complete();
  };
  engine_->post_and_stay([&] {
    const auto line = programs_.lines.find(group);
    if (line == programs_.lines.end()) return look();
    line->second.push_back({.visitor = look});
  });
  engine_->wait(known);
  return next;
}

Operation start_program(const Group& group, std::shared_ptr<Program> program) {
  return NodeCore::start_program(group.core_, *group.record_, std::move(program));
}

void stop_call(Operation& call, const Error& reason) { NodeCore::stop_for_program(call, reason); }

}  // namespace nexar::runtime
