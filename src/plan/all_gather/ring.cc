// Ring all-gather: every slot travels once around the ring; each rank passes on what it got in the step before.
//
// Cost: n-1 hops, n-1 slots sent by each rank: best for large slots, and for uneven ones.
#include "plan/algorithms.h"
#include "plan/builder.h"
#include "plan/neighbours.h"

namespace nexar::plan {

Plan ring_all_gather(const Shape& shape) {
  PlanBuilder plan(shape, "ring");
  const Ring ring(shape.rank, shape.size);
  const Cut slots = shape.output_slots();
  const auto slot = [&](Rank i) { return plan.output().sub(slots.piece(i)); };

  plan.copy(plan.input(), slot(shape.rank));
  for (Rank step = 0; step < shape.size - 1; ++step)
    plan.exchange(ring.next(), step == 0 ? plan.input() : slot(shape.rank - step), ring.previous(), store_in(slot(shape.rank - step - 1)));
  return plan.build();
}

}  // namespace nexar::plan
