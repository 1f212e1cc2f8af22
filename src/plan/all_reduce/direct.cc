// Direct all-reduce: everybody gives everything to everybody, and each rank reduces for itself, in rank order, in one go.
//
// All ranks evaluate the same expression, the one that `reproducible` asks for. Scratch: n-1 times the buffer.
//
// Cost: 1 hop, n-1 messages and n-1 times the buffer sent: best for the smallest buffers on few ranks.
#include <utility>
#include <vector>

#include "plan/algorithms.h"
#include "plan/patterns.h"

namespace nexar::plan {

Plan direct_all_reduce(const Shape& shape) {
  PlanBuilder plan(shape, "direct");
  std::vector<Slice> sources(static_cast<std::size_t>(shape.size), plan.input());
  for (Rank step = 1; step < shape.size; ++step) {
    const Rank to = (shape.rank + step) % shape.size;
    const Rank from = (shape.rank - step + shape.size) % shape.size;
    Slice& source = sources[static_cast<std::size_t>(from)];
    source = plan.scratch(shape.count);
    plan.exchange(to, plan.input(), from, store_in(source));
  }
  reduce_in_order(plan, std::move(sources), plan.output());
  return plan.build();
}

}  // namespace nexar::plan
