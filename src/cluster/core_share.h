// How a rank shares the cores of its host with the other ranks there: the one place that says how its threads wait.
#pragma once

#include "cluster/view.h"
#include "nexar/ids.h"

namespace nexar::cluster {

struct CoreShare {
  // More ranks may run on this rank's cores than it has: whoever spins offers its core after every turn.
  bool crowded = false;

  // What a thread waits for can happen while it spins. Not so on a single core that another rank needs too, or that is all there is.
  bool spins = true;

  friend bool operator==(const CoreShare&, const CoreShare&) = default;
};

// What the calling process finds where it runs.
struct OwnCores {
  int usable = 1;  // that it may run on
  int online = 1;  // that its host has
};

// Goes by the cores that the members of the rank's host have told. Where one has not, all are taken to run on those of this process.
CoreShare core_share(const View& view, Rank rank, const OwnCores& own);

}  // namespace nexar::cluster
