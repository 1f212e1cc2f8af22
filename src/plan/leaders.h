// Chains of two levels: over one rank of each host, the leader, and over the ranks of each host from its leader.
#pragma once

#include "plan/hosts.h"
#include "plan/neighbours.h"

namespace nexar::plan {

// The root leads its host, the lowest rank every other. Both chains begin at the root's.
class Leaders {
 public:
  Leaders(const Hosts& hosts, Rank rank, Rank root)
      : hosts_(hosts),
        root_(root),
        here_(hosts.host_of(rank)),
        inside_(hosts.ranks(here_), hosts.position(rank)),
        leads_(rank == leader(here_)) {}

  bool leads() const { return leads_; }

  // Of leaders; -1 at the ends.
  Rank next_leader() const { return host_at(1) == hosts_.host_of(root_) ? -1 : leader(host_at(1)); }
  Rank previous_leader() const { return here_ == hosts_.host_of(root_) ? -1 : leader(host_at(-1)); }

  // On this host; -1 at the ends.
  Rank next_inside() const { return inside_.next() == leader(here_) ? -1 : inside_.next(); }
  Rank previous_inside() const { return leads_ ? -1 : inside_.previous(); }

 private:
  Rank leader(Rank host) const { return host == hosts_.host_of(root_) ? root_ : hosts_.ranks(host)[0]; }
  Rank host_at(Rank distance) const { return (here_ + distance + hosts_.count()) % hosts_.count(); }

  const Hosts& hosts_;
  Rank root_;
  Rank here_;
  PartRing inside_;
  bool leads_;
};

}  // namespace nexar::plan
