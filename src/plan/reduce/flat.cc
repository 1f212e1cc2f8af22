// Flat reduce: everybody sends to the root, which accumulates in rank order, in one go.
//
// What `reproducible` needs. Scratch at the root: n-1 times the buffer.
//
// Cost: 1 hop, the buffer received n-1 times by the root: for the fewest ranks and the smallest buffers.
#include <utility>
#include <vector>

#include "plan/algorithms.h"
#include "plan/patterns.h"

namespace nexar::plan {

Plan flat_reduce(const Shape& shape) {
  PlanBuilder plan(shape, "flat");
  if (!shape.is_root()) {
    plan.send(shape.root, plan.input());
    return plan.build();
  }
  std::vector<Slice> sources(static_cast<std::size_t>(shape.size), plan.input());
  for (Rank step = 1; step < shape.size; ++step) {
    const Rank from = (shape.root + step) % shape.size;
    Slice& source = sources[static_cast<std::size_t>(from)];
    source = plan.scratch(shape.count);
    plan.receive(from, store_in(source));
  }
  reduce_in_order(plan, std::move(sources), plan.output());
  return plan.build();
}

}  // namespace nexar::plan
