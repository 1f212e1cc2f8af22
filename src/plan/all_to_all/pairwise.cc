// Pairwise all-to-all: in step s every rank sends to the rank s above and receives from the rank s below, so that nobody gets two messages
// at once.
//
// A few steps are in flight at a time: enough to hide what one pair's slowness costs, few enough that a large group does not flood its
// links.
//
// Cost: n-1 messages, n-1 slots sent by each rank; also for uneven slots.
#include <vector>

#include "plan/algorithms.h"
#include "plan/builder.h"

namespace nexar::plan {
namespace {

constexpr std::size_t kInFlight = 8;

}  // namespace

Plan pairwise_all_to_all(const Shape& shape) {
  PlanBuilder plan(shape, "pairwise");
  const Cut sent = shape.input_slots();
  const Cut received = shape.output_slots();
  plan.copy(plan.input().sub(sent.piece(shape.rank)), plan.output().sub(received.piece(shape.rank)));
  std::vector<StepRange> steps;
  for (Rank step = 1; step < shape.size; ++step) {
    const Rank to = (shape.rank + step) % shape.size;
    const Rank from = (shape.rank - step + shape.size) % shape.size;
    if (steps.size() >= kInFlight) plan.wait_for(steps[steps.size() - kInFlight]);
    steps.push_back(plan.exchange(to, plan.input().sub(sent.piece(to)), from, store_in(plan.output().sub(received.piece(from)))));
  }
  return plan.build();
}

}  // namespace nexar::plan
