// Operations that are made of others.
#include <utility>

#include "runtime/node_core.h"

namespace nexar::runtime {
namespace {

// The first error of the parts, in their order, and whether all is well with what came of them. What the conclusion holds is given back.
Result<Status> outcome(OperationState& whole) {
  const std::function<Result<void>()> conclude = std::exchange(whole.conclude, nullptr);
  *whole.running = nullptr;
  for (const std::shared_ptr<OperationState>& part : whole.parts)
    if (!*part->result) return part->result->error();
  if (conclude != nullptr)
    if (auto concluded = conclude(); !concluded) return std::move(concluded).error();
  return Status{};
}

}  // namespace

Operation NodeCore::compound(const std::shared_ptr<NodeCore>& core, std::vector<Operation> parts, std::function<Result<void>()> conclude) {
  auto whole = std::make_shared<OperationState>();
  whole->kind = OperationState::Kind::kCompound;
  whole->core = core;
  whole->conclude = std::move(conclude);
  whole->running = std::make_shared<OperationState*>(whole.get());
  for (Operation& part : parts)
    if (part.state_ != nullptr) whole->parts.push_back(std::exchange(part.state_, nullptr));
  const CallGate::Pass pass(core->gate_);
  if (pass) {
    core->engine_->post([core = core.get(), whole = whole.get()] { core->attach_parts(*whole); });
  } else {
    core->gate_.wait_for_exit();  // the parts have ended by then
    whole->result.emplace(outcome(*whole));
    whole->completion.complete();
  }
  return Operation(std::move(whole));
}

// Runs after what began the parts: one that is not active now has ended.
void NodeCore::attach_parts(OperationState& whole) {
  whole.active = true;
  whole.parts_left = 1;  // this function itself, so that the end comes once
  for (const std::shared_ptr<OperationState>& part : whole.parts) {
    if (!part->active) continue;
    part->whole = &whole;
    ++whole.parts_left;
  }
  on_part_ended(whole);
}

// The first part that fails ends the others: those who take part in them may have ended theirs. Not from here, because whoever ended the
// part may be about to look at the others. The parts stay until the compound goes, which is when whoever holds it has seen its end.
void NodeCore::on_part_ended(OperationState& whole) {
  if (--whole.parts_left == 0) return finish(whole, outcome(whole));
  if (whole.verdict) return;
  for (const std::shared_ptr<OperationState>& part : whole.parts) {
    if (part->active || !part->result || *part->result) continue;
    whole.verdict = part->result->error();
    return engine_->post([this, running = whole.running] {
      if (*running != nullptr) stop_parts(**running);
    });
  }
}

void NodeCore::stop_parts(OperationState& whole) {
  ++whole.parts_left;  // this function itself
  for (const std::shared_ptr<OperationState>& part : whole.parts) {
    if (!part->active) continue;
    part->verdict = whole.verdict;
    stop(*part);
  }
  on_part_ended(whole);
}

}  // namespace nexar::runtime
