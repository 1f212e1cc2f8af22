// Two-level broadcast: along a chain of one rank of each host, and along a chain inside each host, segment by segment.
//
// Cost, on h hosts of m ranks: h-1 hops between and m-1 inside, the buffer sent once by each host and at most twice by a rank; with many
// segments the time of one transfer: best for large buffers, wherever the ranks are.
#include "plan/algorithms.h"
#include "plan/builder.h"
#include "plan/leaders.h"

namespace nexar::plan {

Plan two_level_broadcast(const Shape& shape) {
  PlanBuilder plan(shape, "two_level");
  const Leaders chain(shape.hosts, shape.rank, shape.root);
  const Rank from = chain.leads() ? chain.previous_leader() : chain.previous_inside();
  if (from >= 0) plan.receive(from, store_in(plan.output()));
  if (chain.leads() && chain.next_leader() >= 0) plan.send(chain.next_leader(), plan.output());
  if (chain.next_inside() >= 0) plan.send(chain.next_inside(), plan.output());
  return plan.build();
}

}  // namespace nexar::plan
