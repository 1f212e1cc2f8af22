// Recursive doubling all-gather, for powers of two: in round k partners at distance 2^k exchange the 2^k slots that each has.
//
// Cost: log2(n) hops, n-1 slots sent by each rank.
#include "plan/algorithms.h"
#include "plan/builder.h"

namespace nexar::plan {

Plan recursive_doubling_all_gather(const Shape& shape) {
  PlanBuilder plan(shape, "recursive_doubling");
  const Cut slots = shape.output_slots();
  plan.copy(plan.input(), plan.output().sub(slots.piece(shape.rank)));
  for (Rank bit = 1; bit < shape.size; bit <<= 1) {
    const Rank partner = shape.rank ^ bit;
    const auto held_by = [&](Rank rank) { return plan.output().sub(slots.pieces(rank & ~(bit - 1), bit)); };
    plan.exchange(partner, bit == 1 ? plan.input() : held_by(shape.rank), partner, store_in(held_by(partner)));
  }
  return plan.build();
}

}  // namespace nexar::plan
