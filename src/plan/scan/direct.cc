// Direct scan: everybody sends its values to all higher ranks, and each rank accumulates those of the lower ones in rank order, in one go.
//
// What `reproducible` needs. Scratch: as many buffers as there are lower ranks.
//
// Cost: 1 hop, up to n-1 messages with the whole buffer.
#include <utility>
#include <vector>

#include "plan/algorithms.h"
#include "plan/patterns.h"

namespace nexar::plan {
namespace {

// Exchanges values; returns those of all lower ranks, in rank order.
std::vector<Slice> lower_values(PlanBuilder& plan) {
  const Shape& shape = plan.shape();
  std::vector<Slice> values(static_cast<std::size_t>(shape.rank));
  for (Rank step = 1; step < shape.size; ++step) {
    if (shape.rank + step < shape.size) plan.send(shape.rank + step, plan.input());
    if (shape.rank - step < 0) continue;
    Slice& value = values[static_cast<std::size_t>(shape.rank - step)];
    value = plan.scratch(shape.count);
    plan.receive(shape.rank - step, store_in(value));
  }
  return values;
}

}  // namespace

Plan direct_scan(const Shape& shape) {
  PlanBuilder plan(shape, "direct");
  std::vector<Slice> sources = lower_values(plan);
  sources.push_back(plan.input());
  reduce_in_order(plan, std::move(sources), plan.output());
  return plan.build();
}

Plan direct_exclusive_scan(const Shape& shape) {
  PlanBuilder plan(shape, "direct");
  std::vector<Slice> sources = lower_values(plan);
  if (sources.empty()) plan.fill_identity(plan.output());
  if (!sources.empty()) reduce_in_order(plan, std::move(sources), plan.output());
  return plan.build();
}

}  // namespace nexar::plan
