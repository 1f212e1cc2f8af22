// Who is lost, and what those who call are told about it.
//
// Pure. Thread: engine. Owned by the node.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cluster/view.h"
#include "nexar/error.h"
#include "nexar/ids.h"
#include "wire/operation_messages.h"

namespace nexar::cluster {

class Losses {
 public:
  // A rank is lost, because of `why`: "it has not answered for 5s". False when that was known. Of this node itself, `why` names who says
  // so.
  bool add(Rank rank, const std::string& why) { return lost_.try_emplace(rank, why).second; }

  bool empty() const { return lost_.empty(); }
  bool contains(Rank rank) const { return lost_.contains(rank); }
  std::vector<Rank> ranks() const;

  // What the others are told: a frame names at most wire::kLostNodesMax nodes.
  std::vector<wire::Revoke> revokes(const View& view) const;

  // kPeerLost with every lost rank; for a node that is lost itself, with itself alone: what it knows of others is old. Not when empty.
  Error error(Rank self, Epoch epoch) const;

 private:
  std::map<Rank, std::string> lost_;  // and why
};

}  // namespace nexar::cluster
