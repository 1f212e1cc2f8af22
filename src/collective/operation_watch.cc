// What an operation does while nothing comes: asks the others, and gives up when it has taken too long.
#include <algorithm>
#include <utility>

#include "collective/operation.h"

namespace nexar::collective {

base::Duration Operation::probe_interval() const {
  const base::Duration quarter = std::min(around_.timeouts.entry, around_.timeouts.progress) / 4;
  return std::clamp<base::Duration>(quarter, kProbeAfter, std::chrono::seconds(1));
}

base::Time Operation::tick(base::Time now) {
  // Whoever has left said what it had to say before.
  for (std::size_t i = unheard_.size(); i-- > 0;)
    if (around_.port.departure(group_->members[static_cast<std::size_t>(unheard_[i])]) != nullptr) heard_of(unheard_[i]);
  if (call_ == nullptr) return base::Time::max();
  if (in_memory_ && std::exchange(moves_seen_, group_->direct->moves()) != group_->direct->moves()) moved_ = true;
  if (std::exchange(moved_, false)) {
    last_moved_ = now;
    next_probe_ = now + kProbeAfter;
  }
  const base::Duration idle = now - last_moved_;
  const bool missing = somebody_is_missing();
  const base::Duration limit = missing ? around_.timeouts.entry : around_.timeouts.progress;
  if (deadline_ && now >= *deadline_) {
    fail(timed_out("deadline", *call_->deadline, group_->self, progress(), seen_, call_->descriptor, sequence()));
    return base::Time::max();
  }
  if (idle >= limit && !seen_.empty()) {
    fail(timed_out(missing ? "entry_timeout" : "progress_timeout", limit, group_->self, progress(), seen_, call_->descriptor, sequence()));
    return base::Time::max();
  }
  if (now >= next_probe_) {
    ask_those_waited_for();
    next_probe_ = now + probe_interval();
  }
  base::Time next = std::min(next_probe_, last_moved_ + std::max(limit, idle + kProbeAfter));
  if (deadline_) next = std::min(next, *deadline_);
  return next;
}

void Operation::ask_early_ones() {
  waited_for_.clear();
  around_.port.early_sources(steps_, waited_for_);
  for (const Rank peer : waited_for_) {
    const std::optional<Rank> rank = group_->rank_of(peer);
    if (!rank || around_.port.departure(peer) != nullptr || std::find(unheard_.begin(), unheard_.end(), *rank) != unheard_.end()) continue;
    unheard_.push_back(*rank);
    ask(*rank);
  }
}

// It has not given the operation up, or had not a moment ago. The operation may have ended after this.
void Operation::heard_of(Rank rank) {
  std::erase(unheard_, rank);
  if (unheard_.empty() && std::exchange(waits_to_succeed_, false)) end({}, false);
}

// Those from whom something is to come, and those whom they wait for: whoever holds all of them up is found at the end.
void Operation::ask_those_waited_for() {
  around_.port.announce(steps_);
  if (in_memory_)
    group_->direct->waits_for(*this, waited_for_);
  else
    run_.waits_for(waited_for_);
  if (settles_with_) waited_for_.push_back(*settles_with_);
  for (const Seen& one : seen_)
    if (one.progress.waits_for >= 0 && one.progress.waits_for < group_->size()) waited_for_.push_back(one.progress.waits_for);
  for (const Seen& one : seen_)
    if (one.state == wire::OperationState::kNotEntered) waited_for_.push_back(one.rank);
  std::sort(waited_for_.begin(), waited_for_.end());
  waited_for_.erase(std::unique(waited_for_.begin(), waited_for_.end()), waited_for_.end());
  for (const Rank rank : waited_for_)
    if (rank != group_->self) ask(rank);
}

void Operation::ask(Rank rank) {
  seen(rank);
  around_.port.tell(group_->members[static_cast<std::size_t>(rank)], group_->id, wire::Probe{sequence(), call_->descriptor, progress()});
}

Seen& Operation::seen(Rank rank) {
  const auto found = std::find_if(seen_.begin(), seen_.end(), [&](const Seen& one) { return one.rank == rank; });
  return found != seen_.end() ? *found : seen_.emplace_back(Seen{rank});
}

// An answer that differs from the one before is progress, whoever makes it.
void Operation::learn(Rank rank, wire::OperationState state, const wire::Progress& progress) {
  Seen& one = seen(rank);
  if (one.state &&
      (*one.state != state || one.progress.steps_done != progress.steps_done || one.progress.bytes_done != progress.bytes_done))
    moved_ = true;
  const Rank waits_for = progress.waits_for;
  one.state = state;
  one.progress = progress;
  if (waits_for < 0 || waits_for >= group_->size() || waits_for == group_->self) return;
  const bool known = std::any_of(seen_.begin(), seen_.end(), [&](const Seen& other) { return other.rank == waits_for; });
  if (!known) ask(waits_for);
}

bool Operation::somebody_is_missing() const {
  return std::any_of(seen_.begin(), seen_.end(), [](const Seen& one) { return one.state == wire::OperationState::kNotEntered; });
}

void Operation::on_probe(Rank from, const wire::Probe& probe) {
  around_.port.tell(group_->members[static_cast<std::size_t>(from)], group_->id,
                    wire::ProbeReply{sequence(), wire::OperationState::kRunning, call_->descriptor, progress()});
  if (probe.call.fingerprint() != steps_.fingerprint) return fail(mismatch(group_->self, call_->descriptor, from, probe.call, sequence()));
  learn(from, wire::OperationState::kRunning, probe.progress);
}

// Of one that ended without success the verdict comes in a frame of its own.
void Operation::on_reply(Rank from, const wire::ProbeReply& reply) {
  if (reply.call && reply.call->fingerprint() != steps_.fingerprint)
    return fail(mismatch(group_->self, call_->descriptor, from, *reply.call, sequence()));
  // It is over in memory, and that rank does not remember more of it than that.
  if (settles_with_ == from && reply.state == wire::OperationState::kDone) return fail(gone_past(from, call_->descriptor, sequence()));
  learn(from, reply.state, reply.progress);
  if (reply.state != wire::OperationState::kEnded) heard_of(from);
}

}  // namespace nexar::collective
