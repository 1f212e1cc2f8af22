// Rank-ordered all-reduce: each chunk is reduced by one rank, its owner, which gets everybody's values of it and accumulates them in rank
// order in one go; then every owner gives its finished chunk to everybody.
//
// The expression is x0, x1, ... x(n-1) from the left, accumulated wide and rounded once, whatever the sizes: this is what `reproducible`
// asks for, and it suits ops that do not commute. Scratch: (n-1)/n of the buffer.
//
// Cost: 2 hops, 2(n-1) messages, 2(n-1)/n of the buffer sent: as much as a ring in far fewer hops, but everybody talks to everybody.
#include "plan/algorithms.h"
#include "plan/patterns.h"

namespace nexar::plan {

Plan rank_ordered_all_reduce(const Shape& shape) {
  PlanBuilder plan(shape, "rank_ordered");
  const Cut cut = Cut::chunks(shape.count, shape.size);
  const auto chunk = [&](Rank owner) { return plan.output().sub(cut.piece(owner)); };

  reduce_own_piece(plan, cut, plan.input(), chunk(shape.rank));
  for (Rank step = 1; step < shape.size; ++step) {
    const Rank to = (shape.rank + step) % shape.size;
    const Rank from = (shape.rank - step + shape.size) % shape.size;
    plan.exchange(to, chunk(shape.rank), from, store_in(chunk(from)).ahead());
  }
  return plan.build();
}

}  // namespace nexar::plan
