// Rank-ordered reduce-scatter: everybody sends slot q to rank q, which accumulates what it gets in rank order, in one go.
//
// What `reproducible` and ops that do not commute need. Scratch: n-1 slots.
//
// Cost: 1 hop, n-1 messages, n-1 slots sent and reduced by each rank; everybody talks to everybody.
#include "plan/algorithms.h"
#include "plan/patterns.h"

namespace nexar::plan {

Plan rank_ordered_reduce_scatter(const Shape& shape) {
  PlanBuilder plan(shape, "rank_ordered");
  reduce_own_piece(plan, shape.input_slots(), plan.input(), plan.output());
  return plan.build();
}

}  // namespace nexar::plan
