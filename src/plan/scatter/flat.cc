// Flat scatter: the root sends each rank its slot.
//
// Cost: 1 hop, n-1 slots sent by the root; also for uneven slots, whose sizes only the root knows.
#include "plan/algorithms.h"
#include "plan/builder.h"

namespace nexar::plan {

Plan flat_scatter(const Shape& shape) {
  PlanBuilder plan(shape, "flat");
  if (!shape.is_root()) {
    plan.receive(shape.root, store_in(plan.output()));
    return plan.build();
  }
  const Cut slots = shape.input_slots();
  for (Rank step = 1; step < shape.size; ++step) {
    const Rank to = (shape.root + step) % shape.size;
    plan.send(to, plan.input().sub(slots.piece(to)));
  }
  plan.copy(plan.input().sub(slots.piece(shape.root)), plan.output());
  return plan.build();
}

}  // namespace nexar::plan
