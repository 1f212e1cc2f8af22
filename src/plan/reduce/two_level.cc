// Two-level reduce: sums go along a chain inside each host to its leader, and along a chain of leaders to the root, segment by segment.
//
// Ranks that are not the root and add something keep the sum in scratch of the buffer's size.
//
// Cost, on h hosts of m ranks: m-1 hops inside and h-1 between, the buffer sent once by each rank and by each host; with many segments the
// time of one transfer: best for large buffers, wherever the ranks are.
#include "plan/algorithms.h"
#include "plan/builder.h"
#include "plan/leaders.h"

namespace nexar::plan {

Plan two_level_reduce(const Shape& shape) {
  PlanBuilder plan(shape, "two_level");
  const Leaders chain(shape.hosts, shape.rank, shape.root);
  const Rank next_leader = chain.leads() ? chain.next_leader() : -1;
  Slice into = plan.output();
  if (!shape.is_root() && (chain.next_inside() >= 0 || next_leader >= 0)) into = plan.scratch(shape.count);

  Slice value = plan.input();
  for (const Rank from : {chain.next_inside(), next_leader}) {
    if (from < 0) continue;
    plan.receive(from, reduce_into(into, value, First::kOwn));
    value = into;
  }
  const Rank to = chain.leads() ? chain.previous_leader() : chain.previous_inside();
  if (to >= 0) plan.send(to, value);
  if (shape.is_root()) plan.finish(plan.output());
  return plan.build();
}

}  // namespace nexar::plan
