#include "cluster/call_schedule.h"

#include <algorithm>
#include <chrono>

namespace nexar::cluster {

CallSchedule::CallSchedule(std::size_t candidates, base::Time now, base::Duration stagger)
    : candidates_(candidates), stagger_(stagger), stagger_until_(now) {
  for (Candidate& candidate : candidates_) candidate.due = now;
}

bool CallSchedule::is_eligible(std::size_t candidate) const {
  return !candidates_[candidate].calling && (!reached_ || *reached_ == candidate);
}

std::optional<std::size_t> CallSchedule::take(base::Time now) {
  if (now < stagger_until_) return std::nullopt;
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < candidates_.size(); ++i)
    if (is_eligible(i) && candidates_[i].due <= now && (!first || candidates_[i].due < candidates_[*first].due)) first = i;
  if (!first) return std::nullopt;
  candidates_[*first].calling = true;
  stagger_until_ = now + stagger_;
  return first;
}

void CallSchedule::other_answered(base::Time now, base::Duration took) {
  if (std::none_of(candidates_.begin(), candidates_.end(), [](const Candidate& one) { return one.calling; })) return;
  stagger_until_ = std::max(stagger_until_, now + std::clamp(took, kCandidateStagger, kStaggerMax));
}

base::Time CallSchedule::next() const {
  base::Time due = base::Time::max();
  for (std::size_t i = 0; i < candidates_.size(); ++i)
    if (is_eligible(i)) due = std::min(due, candidates_[i].due);
  return due == base::Time::max() ? due : std::max(due, stagger_until_);
}

void CallSchedule::failed(std::size_t candidate, bool was_reached, base::Time now, double jitter) {
  Candidate& one = candidates_[candidate];
  one.calling = false;
  // Half of the time at least, so that jitter never makes a storm of it.
  one.due = now + std::chrono::duration_cast<base::Duration>(one.backoff * (0.5 + 0.5 * jitter));
  one.backoff = std::min(one.backoff * 2, kRetryMax);
  if (reached_ == candidate && !was_reached) reached_.reset();
  stagger_until_ = now;  // the next candidate need not wait for this one any more
}

}  // namespace nexar::cluster
