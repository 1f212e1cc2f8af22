#include "collective/group_state.h"

#include <algorithm>
#include <utility>

#include "collective/operation.h"

namespace nexar::collective {

std::optional<Rank> GroupState::rank_of(Rank world_rank) const {
  const auto found = std::find(members.begin(), members.end(), world_rank);
  if (found == members.end()) return std::nullopt;
  return static_cast<Rank>(found - members.begin());
}

Operation* GroupState::find(Sequence sequence) const {
  const auto found = std::lower_bound(running.begin(), running.end(), sequence,
                                      [](const Operation* one, Sequence wanted) { return one->sequence() < wanted; });
  return found != running.end() && (*found)->sequence() == sequence ? *found : nullptr;
}

void GroupState::remember(Ended one) {
  const std::size_t at = one.sequence % kEndedMax;
  if (at >= ended.size()) ended.resize(at + 1);
  ended[at] = std::move(one);
}

const Ended* GroupState::recall(Sequence sequence) const {
  const std::size_t at = sequence % kEndedMax;
  return at < ended.size() && ended[at].sequence == sequence ? &ended[at] : nullptr;
}

}  // namespace nexar::collective
