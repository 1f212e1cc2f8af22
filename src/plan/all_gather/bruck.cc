// Bruck all-gather, for any number of ranks: a rank that has the slots r, r+1, ... r+h-1 gives them to rank r-h and gets the next h from
// rank r+h, so that what it has doubles in every round; the last round moves what is missing.
//
// Slots are stored where they belong. A run of them may wrap around the end of the buffer; then it is two messages, for both ends alike.
//
// Cost: ceil(log2(n)) hops, n-1 slots sent by each rank: best for small slots.
#include <algorithm>
#include <vector>

#include "plan/algorithms.h"
#include "plan/builder.h"

namespace nexar::plan {

Plan bruck_all_gather(const Shape& shape) {
  PlanBuilder plan(shape, "bruck");
  const Cut slots = shape.output_slots();
  const auto run = [&](Rank first, Rank length) {
    const Rank start = first % shape.size;
    const Rank before = std::min(length, shape.size - start);
    std::vector<Slice> slices = {plan.output().sub(slots.pieces(start, before))};
    if (before < length) slices.push_back(plan.output().sub(slots.pieces(0, length - before)));
    return slices;
  };

  plan.copy(plan.input(), plan.output().sub(slots.piece(shape.rank)));
  for (Rank held = 1; held < shape.size; held *= 2) {
    const Rank moved = std::min(held, shape.size - held);
    const Rank to = (shape.rank - held + shape.size) % shape.size;
    const Rank from = (shape.rank + held) % shape.size;
    for (const Slice& slice : run(shape.rank, moved)) plan.send(to, held == 1 ? plan.input() : slice);
    for (const Slice& slice : run(from, moved)) plan.receive(from, store_in(slice));
  }
  return plan.build();
}

}  // namespace nexar::plan
