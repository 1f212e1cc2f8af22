// Groups that a peer has named and this node does not have yet.
//
// Members make a group one after the other, so that frames of a faster one come early, and something is kept for them: credit, messages,
// grants. For how many is in wire::kEarlyGroupsMax; this node's own groups do not count, however many they are.
//
// Thread: engine. Owned by a Peer.
#pragma once

#include <cstddef>
#include <set>
#include <unordered_set>

#include <fmt/format.h>

#include "mesh/message.h"
#include "nexar/result.h"
#include "wire/limits.h"

namespace nexar::mesh {

class EarlyGroups {
 public:
  // `known` are this node's groups.
  EarlyGroups(Rank peer, const std::unordered_set<GroupId>& known) : peer_(peer), known_(known) {}

  // Something is about to be kept for a group that the peer names. An error ends the link.
  Result<void> admit(GroupId group) {
    if (known_.contains(group) || early_.contains(group)) return {};
    if (early_.size() >= wire::kEarlyGroupsMax)
      return Error(ErrorCode::kRefused,
                   fmt::format("rank {} speaks of more than {} groups that are not known here", peer_, wire::kEarlyGroupsMax));
    early_.insert(group);
    return {};
  }

  // It is this node's now.
  void forget(GroupId group) { early_.erase(group); }

  std::size_t size() const { return early_.size(); }

 private:
  Rank peer_;
  const std::unordered_set<GroupId>& known_;
  std::set<GroupId> early_;
};

}  // namespace nexar::mesh
