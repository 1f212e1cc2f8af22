// Bruck all-to-all: a slot that has to travel d ranks up takes the hops 1, 2, 4, ... that d is the sum of, together with all others that
// take the same hop.
//
// Round k packs every slot whose distance has bit k, sends them 2^k ranks up in one message, and takes as many from 2^k ranks below. After
// the last round the slot of distance d is the one from rank r-d. Scratch: about n slots for each round.
//
// Cost: ceil(log2(n)) messages, n/2 slots sent and packed in each: best for the smallest slots.
#include <vector>

#include "plan/algorithms.h"
#include "plan/builder.h"

namespace nexar::plan {

Plan bruck_all_to_all(const Shape& shape) {
  PlanBuilder plan(shape, "bruck");
  const Cut slots = Cut::slots(shape.count, shape.size);
  std::vector<Slice> at;  // where the slot of each distance is now
  for (Rank distance = 0; distance < shape.size; ++distance) at.push_back(plan.input().sub(slots.piece(shape.rank + distance)));

  for (Rank bit = 1; bit < shape.size; bit <<= 1) {
    std::vector<std::size_t> moved;
    for (std::size_t distance = 0; distance < at.size(); ++distance)
      if ((distance & static_cast<std::size_t>(bit)) != 0) moved.push_back(distance);
    const Cut cut = Cut::slots(shape.count, static_cast<Rank>(moved.size()));
    const Slice packed = plan.scratch(cut.total());
    const Slice arrived = plan.scratch(cut.total());
    for (std::size_t i = 0; i < moved.size(); ++i) {
      const Extent piece = cut.piece(static_cast<std::int64_t>(i));
      plan.copy(at[moved[i]], packed.sub(piece));
      at[moved[i]] = arrived.sub(piece);
    }
    plan.exchange((shape.rank + bit) % shape.size, packed, (shape.rank - bit + shape.size) % shape.size, store_in(arrived));
  }
  for (Rank distance = 0; distance < shape.size; ++distance)
    plan.copy(at[static_cast<std::size_t>(distance)], plan.output().sub(slots.piece(shape.rank - distance)));
  return plan.build();
}

}  // namespace nexar::plan
