// Flat gather: everybody sends to the root, which stores each slot where it belongs.
//
// Cost: 1 hop, n-1 slots received by the root; also for uneven slots, whose sizes only the root knows.
#include "plan/algorithms.h"
#include "plan/builder.h"

namespace nexar::plan {

Plan flat_gather(const Shape& shape) {
  PlanBuilder plan(shape, "flat");
  if (!shape.is_root()) {
    plan.send(shape.root, plan.input());
    return plan.build();
  }
  const Cut slots = shape.output_slots();
  plan.copy(plan.input(), plan.output().sub(slots.piece(shape.root)));
  for (Rank step = 1; step < shape.size; ++step) {
    const Rank from = (shape.root + step) % shape.size;
    plan.receive(from, store_in(plan.output().sub(slots.piece(from))));
  }
  return plan.build();
}

}  // namespace nexar::plan
