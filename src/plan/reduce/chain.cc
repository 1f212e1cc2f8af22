// Chain reduce: every rank adds its values to what it gets from the rank above and passes the sum down to the root, segment by segment.
//
// Where rank order has to be kept the chain ends at rank 0 and the result takes one more hop to the root. Ranks in the middle keep
// partial sums in scratch of the buffer's size.
//
// Cost: n-1 hops, the buffer sent and reduced once by each rank; with many segments the time of one transfer, whatever n: best for large
// buffers.
#include "plan/algorithms.h"
#include "plan/builder.h"
#include "plan/neighbours.h"

namespace nexar::plan {

Plan chain_reduce(const Shape& shape) {
  PlanBuilder plan(shape, "chain");
  const Rank end = shape.ordered ? 0 : shape.root;
  const Ring ring(shape.rank, shape.size);
  const bool is_end = shape.rank == end;

  Slice value = plan.input();
  if (ring.next() != end) {
    const Slice into = shape.is_root() ? plan.output() : plan.scratch(shape.count);
    plan.receive(ring.next(), reduce_into(into, value, First::kOwn));
    value = into;
  }
  if (!is_end) plan.send(ring.previous(), value);
  if (is_end && !shape.is_root()) plan.send(shape.root, value);
  if (!shape.is_root()) return plan.build();
  if (is_end) plan.copy(value, plan.output());
  if (!is_end) plan.receive(end, store_in(plan.output()).ahead());
  plan.finish(plan.output());
  return plan.build();
}

}  // namespace nexar::plan
