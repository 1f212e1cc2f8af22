// Runs of slots in a tree whose top is not rank 0.
#pragma once

#include <algorithm>
#include <vector>

#include "plan/neighbours.h"

namespace nexar::plan {

struct SlotRun {
  Rank position;  // in the tree
  Rank rank;      // of the same slot
  Rank length;
};

// The slots of the subtree of `position` as runs of ranks: two where it wraps around the last rank. A message of a subtree is cut like this
// at both ends, because the root stores slots by rank.
inline std::vector<SlotRun> subtree_runs(const Tree& tree, Rank position, Rank size) {
  const Rank length = tree.subtree(position);
  const Rank rank = tree.rank_at(position);
  const Rank before = std::min(length, size - rank);
  std::vector<SlotRun> runs = {{position, rank, before}};
  if (before < length) runs.push_back({position + before, 0, length - before});
  return runs;
}

}  // namespace nexar::plan
