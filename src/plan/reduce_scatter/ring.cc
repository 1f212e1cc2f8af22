// Ring reduce-scatter: one lap around the ring; slot i starts at rank i+1 and collects one more rank's values at every hop, so that it ends
// at rank i.
//
// The input is kept, so partial sums live in scratch: four slots taken in turn, enough that the next receives are granted while earlier
// partial sums are still on their way out. In place they live where the values were.
//
// Cost: n-1 hops, n-1 slots sent and reduced by each rank: best for large slots.
#include <algorithm>
#include <vector>

#include "plan/algorithms.h"
#include "plan/patterns.h"

namespace nexar::plan {
namespace {

constexpr std::int64_t kScratchSlots = 4;

}  // namespace

Plan ring_reduce_scatter(const Shape& shape) {
  PlanBuilder plan(shape, "ring");
  const Cut slots = shape.input_slots();
  const std::int64_t last = shape.size - 2;
  const bool overwrites = shape.alias() == Alias::kOutputInInput;
  std::vector<Slice> scratch;
  if (!overwrites)
    for (std::int64_t i = 0; i < std::min(kScratchSlots, last); ++i) scratch.push_back(plan.scratch(slots.largest()));

  const auto place = [&](std::int64_t taken, std::int64_t step) {
    if (step == last) return plan.output();
    if (overwrites) return plan.input().sub(slots.piece(taken));
    return scratch[static_cast<std::size_t>(step) % scratch.size()].sub({0, slots.piece(taken).count});
  };
  const Slice result = reduce_around(plan, Ring(shape.rank, shape.size), slots, plan.input(), 1, place);
  if (shape.size == 1) plan.copy(result, plan.output());
  plan.finish(plan.output());
  return plan.build();
}

}  // namespace nexar::plan
