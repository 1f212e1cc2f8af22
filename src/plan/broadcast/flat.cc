// Flat broadcast: the root sends to everybody.
//
// Cost: 1 hop, the buffer sent n-1 times by the root: for the fewest ranks.
#include "plan/algorithms.h"
#include "plan/builder.h"

namespace nexar::plan {

Plan flat_broadcast(const Shape& shape) {
  PlanBuilder plan(shape, "flat");
  if (!shape.is_root()) plan.receive(shape.root, store_in(plan.output()));
  for (Rank step = 1; step < shape.size && shape.is_root(); ++step) plan.send((shape.root + step) % shape.size, plan.output());
  return plan.build();
}

}  // namespace nexar::plan
