#include "collective/group_state.h"

#include <algorithm>

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

const Ended* GroupState::recall(Sequence sequence) const {
  const Ended& one = ended[sequence % kEndedMax];
  return one.sequence == sequence ? &one : nullptr;
}

}  // namespace nexar::collective
