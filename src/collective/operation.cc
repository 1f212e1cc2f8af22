#include "collective/operation.h"

#include <utility>

#include "base/assert.h"

namespace nexar::collective {

void Operation::begin(Call& call, GroupState& group, Sequence sequence, base::Time now, bool is_late) {
  NEXAR_ASSERT(call_ == nullptr, "an operation has one call at a time");
  call_ = &call;
  group_ = &group;
  steps_.group = group.id;
  steps_.sequence = sequence;
  steps_.fingerprint = call.descriptor.fingerprint();
  steps_.owner = this;
  last_moved_ = now;
  next_probe_ = now + kProbeAfter;
  deadline_ = call.deadline ? std::optional(now + *call.deadline) : std::nullopt;
  seen_.clear();
  stages_.begin(call);
  settles_with_.reset();
  lent_ = false;
  around_.port.enter(steps_);
  begun_ = true;
  in_memory_ = goes_by_memory();
  unheard_.clear();
  waits_to_succeed_ = false;
  if (is_late && !in_memory_) ask_early_ones();
  if (in_memory_) {
    call.ran = {kInMemory};
    moves_seen_ = group.direct->moves();
    group.direct->enter(*this, direct_call_, call.begun);
  } else {
    next_stage();
  }
  moved_ = false;  // what this rank sends when it begins is no sign of the others
}

void Operation::next_stage() {
  Result<std::optional<Stage>> stage = stages_.next();
  if (!stage) return end(std::move(stage).error(), true);
  if (!*stage) {
    waits_to_succeed_ = !unheard_.empty();
    if (!waits_to_succeed_) end({}, false);
    return;
  }
  if (auto started = start(**std::move(stage)); !started) return end(std::move(started), true);
  check();
}

Result<void> Operation::start(Stage stage) {
  const std::optional<Error> failed = run_.error();  // before the first stage
  run_.reset();
  if (failed) return *failed;
  stage.shape.hosts = group_->hosts;
  Result<std::shared_ptr<const plan::Plan>> plan =
      around_.planner.plan(stage.shape, stage.algorithm_asked ? call_->algorithm : std::string_view());
  if (!plan) return std::move(plan).error();
  (call_->ran[0].empty() ? call_->ran[0] : call_->ran[1]) = (*plan)->algorithm;
  const std::uint64_t scratch = (*plan)->scratch_count * (*plan)->shape.element_bytes;
  if (scratch > scratch_.bytes) {
    around_.scratch.give(std::exchange(scratch_, {}));
    Result<ScratchPool::Block> block = around_.scratch.take(scratch);
    if (!block) return std::move(block).error();
    scratch_ = *std::move(block);
  }
  if (const std::uint64_t staging = PlanRun::staging_bytes(**plan, call_->pieces); staging > 0) {
    Result<BufferPool::Lease> lease = around_.pool->take(static_cast<std::size_t>(staging));
    if (!lease) return std::move(lease).error();
    staging_ = *std::move(lease);
  }
  run_.start({.plan = *std::move(plan),
              .input = stage.input,
              .output = stage.output,
              .pieces = call_->pieces,
              .staging = staging_.data(),
              .scratch = scratch_.memory.get(),
              .reducer = call_->reducer ? &*call_->reducer : nullptr,
              .op = call_->op,
              .members = group_->members,
              .port = &around_.port,
              .operation = &steps_});
  return {};
}

// Looks at what the run has come to; not while it is under way.
void Operation::check() {
  if (!begun_ || run_.is_walking()) return;
  if (run_.error()) return end(*run_.error(), around_.port.verdict() == nullptr);
  if (run_.is_done() && !waits_to_succeed_) next_stage();
}

void Operation::end(Result<void> result, bool tell) {
  if (std::exchange(in_memory_, false) && group_->direct->leave(*this, steps_.sequence)) lent_ = true;
  around_.port.leave(steps_);
  run_.reset();
  around_.scratch.give(std::exchange(scratch_, {}));
  staging_ = {};
  begun_ = false;
  if (!result) {
    const Error error = of_operation(std::move(result).error(), call_->descriptor, steps_.sequence);
    const Error verdict = tell ? verdict_for_others(error, group_->self, call_->descriptor, steps_.sequence) : error;
    group_->remember({steps_.sequence, call_->descriptor, verdict});
    if (tell)
      for (Rank rank = 0; rank < group_->size(); ++rank)
        if (rank != group_->self)
          around_.port.tell(group_->members[static_cast<std::size_t>(rank)], group_->id, wire::Verdict{steps_.sequence, verdict});
    return around_.ended(*this, error);
  }
  group_->remember({steps_.sequence, call_->descriptor, std::nullopt});
  around_.ended(*this, {});
}

void Operation::fail(const Error& error) {
  run_.fail(error);
  check();
}

void Operation::end_with(const Error& verdict) { end(verdict, false); }

void Operation::take(mesh::StepReceive& receive, std::uint64_t offset, base::ByteView bytes) {
  moved_ = true;
  run_.take(receive, offset, bytes);
}

void Operation::on_sent(mesh::StepSend& send) {
  moved_ = true;
  run_.on_sent(send);
  check();
}

void Operation::on_received(mesh::StepReceive& receive) {
  moved_ = true;
  run_.on_received(receive);
  check();
}

// Its fingerprint says that it called something else; what that was it is asked, and told what was called here.
void Operation::on_disagreement(Rank peer) {
  if (const std::optional<Rank> rank = group_->rank_of(peer)) ask(*rank);
}

void Operation::on_other_size(Rank peer, std::uint64_t theirs, std::uint64_t ours) {
  const std::optional<Rank> rank = group_->rank_of(peer);
  fail(other_size(group_->self, ours, rank.value_or(-1), theirs, call_->descriptor, steps_.sequence));
}

void Operation::on_failed(const Error& error) { fail(error); }

}  // namespace nexar::collective
