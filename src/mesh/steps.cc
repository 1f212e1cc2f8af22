#include "mesh/steps.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "mesh/peer.h"

namespace nexar::mesh {

Steps::Group* Steps::find(GroupId group) {
  const auto found = groups_.find(group);
  return found == groups_.end() ? nullptr : &found->second;
}

StepOperation* Steps::find(const Group& group, Sequence sequence) {
  const auto found = std::lower_bound(group.active.begin(), group.active.end(), sequence,
                                      [](const StepOperation* one, Sequence wanted) { return one->sequence < wanted; });
  return found != group.active.end() && (*found)->sequence == sequence ? *found : nullptr;
}

StepOperation* Steps::find(GroupId id, Sequence sequence) {
  const Group* group = find(id);
  return group == nullptr ? nullptr : find(*group, sequence);
}

StepReceive* Steps::find_receive(const StepOperation& operation, Rank source, std::uint32_t part) {
  const auto found = std::find_if(operation.receives.begin(), operation.receives.end(),
                                  [&](const StepReceive* one) { return one->peer == source && one->part == part; });
  return found == operation.receives.end() ? nullptr : *found;
}

bool Steps::is_over(GroupId id, Sequence sequence) const {
  const auto found = groups_.find(id);
  return found != groups_.end() && sequence <= found->second.last && find(found->second, sequence) == nullptr;
}

void Steps::add_group(GroupId id) {
  known_.insert(id);
  for (const auto& one : peers_) one->early_groups().forget(id);
}

// Numbers that were left out have ended without messages; what came for them is of ranks that called something else.
void Steps::begin_group(GroupId id, Group& group, Sequence sequence) {
  NEXAR_ASSERT(sequence > group.last, "operations of a group are entered in order");
  while (!group.kept.empty() || !group.grants.empty()) {
    std::optional<Sequence> left_out;
    for (const auto& kept : group.kept)
      if (kept->sequence > group.last && kept->sequence < sequence) left_out = kept->sequence;
    for (const KeptGrant& grant : group.grants)
      if (grant.sequence > group.last && grant.sequence < sequence) left_out = grant.sequence;
    if (!left_out) break;
    drop_kept(id, group, *left_out);
  }
  group.last = sequence;
}

void Steps::enter(StepOperation& operation) {
  Group& group = groups_[operation.group];
  begin_group(operation.group, group, operation.sequence);
  group.active.push_back(&operation);
  if (group.kept.empty() && group.grants.empty()) return;
  std::vector<Rank> others;
  for (const auto& kept : group.kept)
    if (kept->sequence == operation.sequence && kept->fingerprint != operation.fingerprint) others.push_back(kept->source);
  for (const KeptGrant& grant : group.grants)
    if (grant.sequence == operation.sequence && grant.fingerprint != operation.fingerprint) others.push_back(grant.from);
  for (const Rank other : others) operation.owner->on_disagreement(other);
}

void Steps::skip(GroupId id, Sequence sequence) {
  Group& group = groups_[id];
  begin_group(id, group, sequence);
  drop_kept(id, group, sequence);
}

// What came for an operation that is over.
void Steps::drop_kept(GroupId id, Group& group, Sequence sequence) {
  if (!group.kept.empty())
    std::erase_if(group.kept, [&](std::unique_ptr<KeptStep>& kept) {
      if (kept->sequence != sequence) return false;
      StepLane& lane = peer(kept->source).steps();
      if (kept->whole)
        lane.give_back(id, kept->bytes);
      else
        lane.stop(*kept);  // the rest is drained, and its credit given back then
      reuse(std::move(kept));
      return true;
    });
  if (!group.grants.empty())
    std::erase_if(group.grants, [&](const KeptGrant& grant) {
      if (grant.sequence != sequence) return false;
      peer(grant.from).outgoing().cancel(grant.transfer);
      return true;
    });
}

void Steps::leave(StepOperation& operation) {
  Group& group = groups_[operation.group];
  std::erase(group.active, &operation);
  for (StepSend* send : operation.sends) stop(*send);
  for (StepReceive* receive : operation.receives) stop(*receive);
  operation.sends.clear();
  operation.receives.clear();
  drop_kept(operation.group, group, operation.sequence);
}

void Steps::send(StepOperation& operation, StepSend& send) {
  Peer& to = peer(send.peer);
  if (to.departure()) return operation.owner->on_failed(*to.departure());
  const bool small = send.data.bytes <= wire::kEagerBytesMax;
  NEXAR_ASSERT(!small || send.regions.empty(), "small messages lie in one place");
  if (small && to.steps().send(operation, send)) {
    send.state = StepSend::State::kDone;
    return operation.owner->on_sent(send);
  }
  send.state = StepSend::State::kWaiting;
  operation.sends.push_back(&send);
  if (!small) use_kept_grant(operation, send);
}

void Steps::sent(StepOperation& operation, StepSend& send) {
  std::erase(operation.sends, &send);
  send.state = StepSend::State::kDone;
  operation.owner->on_sent(send);
}

void Steps::receive(StepOperation& operation, StepReceive& receive) {
  receive.state = StepReceive::State::kPosted;
  Group& group = groups_[operation.group];
  const auto kept = std::find_if(group.kept.begin(), group.kept.end(), [&](const auto& one) {
    return one->source == receive.peer && one->part == receive.part && one->sequence == operation.sequence &&
           one->fingerprint == operation.fingerprint;
  });
  if (kept != group.kept.end() && (*kept)->whole) {
    std::unique_ptr<KeptStep> message = std::move(*kept);
    group.kept.erase(kept);
    return deliver(operation, receive, std::move(message));
  }
  operation.receives.push_back(&receive);
  if (kept != group.kept.end()) {  // the rest is on its way
    receive.state = StepReceive::State::kArriving;
    (*kept)->operation = &operation;
    (*kept)->taker = &receive;
    return;
  }
  Peer& from = peer(receive.peer);
  if (from.departure()) return operation.owner->on_failed(*from.departure());
  if (receive.bytes > wire::kEagerBytesMax)
    grant(operation, receive);
  else
    from.steps().want(operation, receive);
}

void Steps::deliver(StepOperation& operation, StepReceive& receive, std::unique_ptr<KeptStep> kept) {
  peer(kept->source).steps().give_back(kept->group, kept->bytes);
  if (kept->bytes != receive.bytes) {
    operation.owner->on_other_size(kept->source, kept->bytes, receive.bytes);
    return;
  }
  if (kept->bytes > 0) operation.owner->take(receive, 0, kept->content);
  reuse(std::move(kept));
  received(operation, receive);
}

void Steps::received(StepOperation& operation, StepReceive& receive) {
  std::erase(operation.receives, &receive);
  receive.state = StepReceive::State::kDone;
  operation.owner->on_received(receive);
}

Steps::Place Steps::place(Rank source, GroupId id, const wire::EagerMessage& message, std::uint64_t bytes) {
  Group& group = groups_[id];
  if (StepOperation* operation = find(group, message.key); operation != nullptr) {
    if (message.fingerprint != operation->fingerprint) {
      operation->owner->on_disagreement(source);
      return Place{};
    }
    if (StepReceive* receive = find_receive(*operation, source, message.step); receive != nullptr) {
      if (bytes != receive->bytes || receive->state != StepReceive::State::kPosted) {
        operation->owner->on_other_size(source, bytes, receive->bytes);
        return Place{};
      }
      receive->state = StepReceive::State::kArriving;
      return Place{operation, receive};
    }
  } else if (message.key <= group.last) {
    return Place{};
  }
  std::unique_ptr<KeptStep> kept = unused();
  kept->source = source;
  kept->group = id;
  kept->sequence = message.key;
  kept->part = message.step;
  kept->fingerprint = message.fingerprint;
  kept->bytes = bytes;
  group.kept.push_back(std::move(kept));
  return Place{.kept = group.kept.back().get()};
}

void Steps::kept_whole(KeptStep& kept) {
  kept.whole = true;
  if (kept.taker == nullptr) return;
  StepOperation& operation = *kept.operation;
  StepReceive& receive = *kept.taker;
  Group& group = groups_[kept.group];
  const auto found = std::find_if(group.kept.begin(), group.kept.end(), [&](const auto& one) { return one.get() == &kept; });
  std::unique_ptr<KeptStep> message = std::move(*found);
  group.kept.erase(found);
  deliver(operation, receive, std::move(message));
}

std::unique_ptr<KeptStep> Steps::unused() {
  if (unused_.empty()) return std::make_unique<KeptStep>();
  std::unique_ptr<KeptStep> kept = std::move(unused_.back());
  unused_.pop_back();
  return kept;
}

void Steps::reuse(std::unique_ptr<KeptStep> kept) {
  if (unused_.size() >= kSpareStepsMax) return;
  kept->content.clear();
  kept->whole = false;
  kept->operation = nullptr;
  kept->taker = nullptr;
  unused_.push_back(std::move(kept));
}

void Steps::want_all(GroupId id, Rank rank) {
  const Group* group = find(id);
  if (group == nullptr) return;
  for (StepOperation* operation : group->active)
    for (StepReceive* receive : operation->receives)
      if (receive->peer == rank && receive->bytes <= wire::kEagerBytesMax && receive->state == StepReceive::State::kPosted)
        peer(rank).steps().want(*operation, *receive);
}

void Steps::early_sources(const StepOperation& operation, std::vector<Rank>& peers) const {
  const auto found = groups_.find(operation.group);
  if (found == groups_.end()) return;
  for (const auto& kept : found->second.kept)
    if (kept->sequence == operation.sequence) peers.push_back(kept->source);
}

const Error* Steps::departure(Rank rank) const {
  const std::optional<Error>& departure = peer(rank).departure();
  return departure ? &*departure : nullptr;
}

bool Steps::is_gone(Rank rank) const { return peer(rank).link() == nullptr || departure(rank) != nullptr; }

void Steps::tell(Rank rank, GroupId group, const wire::Verdict& verdict) { peer(rank).control().send(verdict, group); }
void Steps::tell(Rank rank, GroupId group, const wire::Probe& probe) { peer(rank).control().send(probe, group); }
void Steps::tell(Rank rank, GroupId group, const wire::ProbeReply& reply) { peer(rank).control().send(reply, group); }

// Those who are told come back and leave, so each is looked for again.
void Steps::on_departure(Rank rank, const Error& error) {
  std::vector<std::pair<GroupId, Sequence>> need;
  const auto is_of = [&](const auto* one) { return one->peer == rank; };
  for (const auto& [id, group] : groups_)
    for (const StepOperation* operation : group.active)
      if (std::any_of(operation->receives.begin(), operation->receives.end(), is_of) ||
          std::any_of(operation->sends.begin(), operation->sends.end(), is_of))
        need.emplace_back(id, operation->sequence);
  for (const auto& [id, sequence] : need)
    if (StepOperation* operation = find(id, sequence); operation != nullptr) operation->owner->on_failed(error);
}

void Steps::end_all(const Error& verdict) {
  std::vector<std::pair<GroupId, Sequence>> all;
  for (const auto& [id, group] : groups_)
    for (const StepOperation* operation : group.active) all.emplace_back(id, operation->sequence);
  for (const auto& [id, sequence] : all)
    if (StepOperation* operation = find(id, sequence); operation != nullptr) operation->owner->on_failed(verdict);
}

std::size_t Steps::kept() const {
  std::size_t count = 0;
  for (const auto& [id, group] : groups_) count += group.kept.size();
  return count;
}

}  // namespace nexar::mesh
