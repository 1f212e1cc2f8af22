#include "cluster/losses.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/assert.h"
#include "wire/limits.h"

namespace nexar::cluster {

std::vector<Rank> Losses::ranks() const {
  std::vector<Rank> ranks;
  for (const auto& [rank, why] : lost_) ranks.push_back(rank);
  return ranks;
}

std::vector<wire::Revoke> Losses::revokes(const View& view) const {
  std::vector<wire::Revoke> revokes;
  for (const auto& [rank, why] : lost_) {
    if (revokes.empty() || revokes.back().lost.size() == wire::kLostNodesMax) revokes.emplace_back();
    revokes.back().lost.push_back(view.member(rank).node);
  }
  return revokes;
}

Error Losses::error(Rank self, Epoch epoch) const {
  NEXAR_ASSERT(!lost_.empty(), "there is a loss to speak of");
  if (const auto found = lost_.find(self); found != lost_.end())
    return Error(ErrorCode::kPeerLost, fmt::format("this rank, {}, was declared lost {}", self, found->second))
        .with_rank(self)
        .with_epoch(epoch);
  const std::vector<Rank> all = ranks();
  if (all.size() == 1)
    return Error(ErrorCode::kPeerLost, fmt::format("rank {} is lost: {}", all[0], lost_.begin()->second)).with_ranks(all).with_epoch(epoch);
  std::vector<std::string> reasons;
  for (const auto& [rank, why] : lost_) reasons.push_back(fmt::format("rank {}: {}", rank, why));
  return Error(ErrorCode::kPeerLost, fmt::format("ranks {} are lost ({})", fmt::join(all, ", "), fmt::join(reasons, "; ")))
      .with_ranks(all)
      .with_epoch(epoch);
}

}  // namespace nexar::cluster
