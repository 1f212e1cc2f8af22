// Two-level barrier: the ranks of a host tell its lowest one that they have entered; these tell each other, as in the dissemination
// barrier; then each tells the others of its host.
//
// Cost, on h hosts: 2 hops inside and ceil(log2(h)) between.
#include "plan/algorithms.h"
#include "plan/builder.h"

namespace nexar::plan {

Plan two_level_barrier(const Shape& shape) {
  PlanBuilder plan(shape, "two_level");
  const Hosts& hosts = shape.hosts;
  const Rank here = hosts.host_of(shape.rank);
  const auto others = hosts.ranks(here).subspan(1);
  const auto leader = [&](Rank host) { return hosts.ranks((host + hosts.count()) % hosts.count())[0]; };

  Slice heard = plan.token();
  if (shape.rank != leader(here)) {
    plan.send(leader(here), heard);
    plan.receive(leader(here), store_in(plan.token()));
    return plan.build();
  }
  const auto hear = [&](Rank from) {
    const Slice next = plan.token();
    plan.receive(from, reduce_into(next, heard, First::kReceived));
    heard = next;
  };
  for (const Rank other : others) hear(other);
  for (Rank distance = 1; distance < hosts.count(); distance *= 2) {
    plan.send(leader(here + distance), heard);
    hear(leader(here - distance));
  }
  for (const Rank other : others) plan.send(other, heard);
  return plan.build();
}

}  // namespace nexar::plan
