// Chain broadcast: every rank passes what it gets to the next, segment by segment.
//
// Cost: n-1 hops, the buffer sent once by each rank; with many segments the time of one transfer, whatever n: best for large buffers.
#include "plan/algorithms.h"
#include "plan/builder.h"
#include "plan/neighbours.h"

namespace nexar::plan {

Plan chain_broadcast(const Shape& shape) {
  PlanBuilder plan(shape, "chain");
  const Ring ring(shape.rank, shape.size);
  if (!shape.is_root()) plan.receive(ring.previous(), store_in(plan.output()));
  if (ring.next() != shape.root) plan.send(ring.next(), plan.output());
  return plan.build();
}

}  // namespace nexar::plan
