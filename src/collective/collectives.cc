#include "collective/collectives.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "collective/outcome.h"

namespace nexar::collective {
namespace {

// Tells those who share memory that nothing comes there. Whether they may still read memory that was lent.
bool leave_out(const Call& call, GroupState& group, Sequence sequence) {
  if (call.begun != nullptr) {
    call.begun->stop(direct::Outcome::kCancelled);
    return call.begun->has_lent();
  }
  if (group.direct != nullptr) group.direct->skip(sequence);
  return false;
}

// What is known of a call that the engine has not seen, or has forgotten.
wire::ProbeReply reply_of_caller(GroupState& group, Sequence sequence) {
  wire::ProbeReply reply{sequence, wire::OperationState::kDone};
  if (group.direct == nullptr) return reply;
  reply.call = group.direct->recent().find(sequence);
  if (group.direct->caller() == sequence) reply.state = wire::OperationState::kRunning;
  return reply;
}

}  // namespace

Collectives::Collectives(Environment environment, const plan::Chooser& chooser, const Timeouts& timeouts)
    : environment_(std::move(environment)),
      timeouts_(timeouts),
      planner_(chooser),
      around_{environment_.port,
              planner_,
              scratch_,
              environment_.pool,
              timeouts_,
              environment_.expel,
              [this](Operation& operation, Result<void> result) { on_ended(operation, std::move(result)); }} {}

void Collectives::add_group(mesh::GroupId id, std::vector<Rank> members, Rank self, plan::Hosts hosts) {
  auto group = std::make_unique<GroupState>();
  group->id = id;
  group->members = std::move(members);
  group->self = self;
  group->hosts = std::move(hosts);
  const bool added = groups_.emplace(id, std::move(group)).second;
  NEXAR_ASSERT(added, "a group is made once");
  environment_.port.add_group(id);
}

GroupState* Collectives::find(mesh::GroupId id) {
  const auto found = groups_.find(id);
  return found == groups_.end() ? nullptr : found->second.get();
}

Sequence Collectives::last_entered(mesh::GroupId id) {
  const GroupState* group = find(id);
  return group == nullptr ? 0 : group->last_entered.load();
}

void Collectives::begin(Call& call) {
  GroupState* group = find(call.group);
  NEXAR_ASSERT(group != nullptr, "a call is made on a group that exists");
  const Sequence sequence = call.begun != nullptr ? call.begun->call().sequence : ++group->last_entered;
  if (call.begun != nullptr) group->direct->caller() = 0;  // the engine answers for it from here on
  if (const Error* over = environment_.port.verdict(); over != nullptr) {
    if (call.begun != nullptr && call.begun->step() == direct::Outcome::kDone) return std::exchange(call.done, nullptr)({});
    const bool lent = call.begun != nullptr && leave_out(call, *group, sequence);
    return finish(call, *group, sequence, lent, of_operation(*over, call.descriptor, sequence));
  }
  if (const std::optional<Error> verdict = early_verdict(*group, sequence)) {
    group->remember({sequence, call.descriptor, *verdict});
    environment_.port.skip(group->id, sequence);
    const bool lent = leave_out(call, *group, sequence);
    return finish(call, *group, sequence, lent, *verdict);
  }
  if (call.refusal) return refuse(call, *group, sequence, *call.refusal);
  if (group->running.size() >= kInFlightMax)
    return refuse(call, *group, sequence,
                  Error(ErrorCode::kOverloaded, fmt::format("{} collectives are in flight on the group already", kInFlightMax)));

  const base::Time now = environment_.now();
  watch_from(now + std::min(kProbeAfter, call.deadline.value_or(kProbeAfter)));
  if (unused_.size() > kSpareOperationsMax) unused_.resize(kSpareOperationsMax);
  running_.push_back(unused());
  Operation& operation = *running_.back();
  group->running.push_back(&operation);
  call.running = &operation;
  const bool is_late = now - group->last_active >= kProbeAfter;
  operation.begin(call, *group, sequence, now, is_late);
}

std::unique_ptr<Operation> Collectives::unused() {
  if (unused_.empty()) return std::make_unique<Operation>(around_);
  std::unique_ptr<Operation> one = std::move(unused_.back());
  unused_.pop_back();
  return one;
}

// Nothing of it was sent; whoever waits for this rank's part learns that none will come.
void Collectives::refuse(Call& call, GroupState& group, Sequence sequence, const Error& error) {
  const Error verdict = verdict_for_others(error, group.self, call.descriptor, sequence);
  group.remember({sequence, std::nullopt, verdict});
  environment_.port.skip(group.id, sequence);
  const bool lent = leave_out(call, group, sequence);
  for (Rank rank = 0; rank < group.size(); ++rank)
    if (rank != group.self)
      environment_.port.tell(group.members[static_cast<std::size_t>(rank)], group.id, wire::Verdict{sequence, verdict});
  finish(call, group, sequence, lent, of_operation(error, call.descriptor, sequence));
}

// The caller has its memory back when it is told.
void Collectives::finish(Call& call, GroupState& group, Sequence sequence, bool lent, Result<void> result) {
  if (result || !lent || all_left(group, sequence)) return std::exchange(call.done, nullptr)(std::move(result));
  leaving_.push_back({&call, &group, sequence, std::move(result)});
}

bool Collectives::all_left(const GroupState& group, Sequence sequence) const {
  for (Rank rank = 0; rank < group.size(); ++rank)
    if (!group.direct->area().has_left(rank, sequence) && !environment_.port.is_gone(group.members[static_cast<std::size_t>(rank)]))
      return false;
  return true;
}

// Whoever is told may call again.
bool Collectives::step_leaving() {
  bool moved = false;
  for (std::size_t i = 0; i < leaving_.size();) {
    if (!all_left(*leaving_[i].group, leaving_[i].sequence)) {
      ++i;
      continue;
    }
    Leaving one = std::move(leaving_[i]);
    leaving_.erase(leaving_.begin() + static_cast<std::ptrdiff_t>(i));
    std::exchange(one.call->done, nullptr)(std::move(one.result));
    moved = true;
  }
  return moved;
}

bool Collectives::is_leaving(const Call& call) const {
  return std::any_of(leaving_.begin(), leaving_.end(), [&](const Leaving& one) { return one.call == &call; });
}

void Collectives::end_leaving() {
  for (Leaving& one : std::exchange(leaving_, {})) std::exchange(one.call->done, nullptr)(std::move(one.result));
}

void Collectives::on_ended(Operation& operation, Result<void> result) {
  Call& call = operation.call();
  GroupState& group = operation.group();
  const Sequence sequence = operation.sequence();
  const bool lent = operation.has_lent();
  group.last_active = environment_.now();
  std::erase(group.running, &operation);
  const auto found = std::find_if(running_.begin(), running_.end(), [&](const auto& one) { return one.get() == &operation; });
  std::unique_ptr<Operation> one = std::move(*found);
  running_.erase(found);
  one->release();
  unused_.push_back(std::move(one));  // not destroyed here: it is what called
  call.running = nullptr;
  finish(call, group, sequence, lent, std::move(result));
}

void Collectives::cancel(Call& call, const Error& error) {
  if (call.running != nullptr) call.running->fail(error);
}

void Collectives::on_verdict(mesh::GroupId id, const wire::Verdict& verdict) {
  GroupState* group = find(id);
  if (group != nullptr && verdict.sequence <= group->last_entered) {
    if (Operation* operation = group->find(verdict.sequence); operation != nullptr) return operation->end_with(verdict.error);
    // A caller's thread is in it, and may come for help.
    if (group->direct == nullptr || group->direct->caller() != verdict.sequence) return;
  }
  keep_early(id, group, verdict);
}

void Collectives::keep_early(mesh::GroupId id, GroupState* group, const wire::Verdict& verdict) {
  if (early_verdicts_.size() >= kEarlyVerdictsMax || !early_verdicts_.try_emplace({id, verdict.sequence}, verdict.error).second) return;
  if (group != nullptr && group->direct != nullptr) group->direct->owner().add_reason();
}

// What was kept about this call; what is left of those before it, which ended otherwise meanwhile, is forgotten.
std::optional<Error> Collectives::early_verdict(GroupState& group, Sequence sequence) {
  std::optional<Error> verdict;
  if (early_verdicts_.empty()) return verdict;
  for (auto kept = early_verdicts_.lower_bound({group.id, 0}); kept != early_verdicts_.end() && kept->first.first == group.id;) {
    if (kept->first.second > sequence) break;
    if (kept->first.second == sequence) verdict = std::move(kept->second);
    kept = early_verdicts_.erase(kept);
    if (group.direct != nullptr) group.direct->owner().remove_reason();
  }
  return verdict;
}

DirectGroup& Collectives::share_memory(mesh::GroupId id, DirectGroup::Memory memory, direct::Spin spin) {
  GroupState* group = find(id);
  NEXAR_ASSERT(group != nullptr && group->direct == nullptr && group->last_entered == 0, "memory is shared before the first call");
  group->direct = std::make_unique<DirectGroup>(std::move(memory), group->self, group->size(), spin, group->last_entered);
  direct_groups_.push_back(group->direct.get());
  for (const auto& [key, verdict] : early_verdicts_)
    if (key.first == id) group->direct->owner().add_reason();
  if (epoch_over_) group->direct->owner().add_reason();
  return *group->direct;
}

bool Collectives::step_direct() {
  bool moved = false;
  for (DirectGroup* group : direct_groups_) moved = group->step() || moved;
  return (!leaving_.empty() && step_leaving()) || moved;
}

bool Collectives::awaits_direct() const {
  return !leaving_.empty() ||
         std::any_of(direct_groups_.begin(), direct_groups_.end(), [](const DirectGroup* group) { return group->is_waiting(); });
}

void Collectives::end_epoch() {
  if (std::exchange(epoch_over_, true)) return;
  for (DirectGroup* group : direct_groups_) group->owner().add_reason();
}

void Collectives::on_probe(Rank from, mesh::GroupId id, const wire::Probe& probe) {
  GroupState* group = find(id);
  if (group == nullptr || probe.sequence > group->last_entered)
    return environment_.port.tell(from, id, wire::ProbeReply{probe.sequence, wire::OperationState::kNotEntered});
  const std::optional<Rank> rank = group->rank_of(from);
  if (!rank) return;
  if (Operation* operation = group->find(probe.sequence); operation != nullptr) return operation->on_probe(*rank, probe);
  const Ended* ended = group->recall(probe.sequence);
  if (ended == nullptr) return environment_.port.tell(from, id, reply_of_caller(*group, probe.sequence));
  const bool succeeded = !ended->verdict;
  environment_.port.tell(
      from, id, wire::ProbeReply{probe.sequence, succeeded ? wire::OperationState::kDone : wire::OperationState::kEnded, ended->call});
  if (!succeeded) environment_.port.tell(from, id, wire::Verdict{probe.sequence, *ended->verdict});
}

void Collectives::on_reply(Rank from, mesh::GroupId id, const wire::ProbeReply& reply) {
  GroupState* group = find(id);
  if (group == nullptr) return;
  const std::optional<Rank> rank = group->rank_of(from);
  Operation* operation = group->find(reply.sequence);
  if (rank && operation != nullptr) operation->on_reply(*rank, reply);
}

void Collectives::watch_from(base::Time time) {
  if (time >= wake_at_) return;
  wake_at_ = time;
  environment_.wake_at(time);
}

// An operation that ends takes only itself out.
void Collectives::tick() {
  const base::Time now = environment_.now();
  wake_at_ = base::Time::max();
  std::vector<Operation*> all;
  for (const auto& one : running_) all.push_back(one.get());
  base::Time next = base::Time::max();
  for (Operation* operation : all) next = std::min(next, operation->tick(now));
  if (next != base::Time::max()) watch_from(next);
}

}  // namespace nexar::collective
