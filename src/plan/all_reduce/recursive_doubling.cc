// Recursive doubling all-reduce: in round k partners at distance 2^k exchange everything they have and both compute the same sum.
//
// The lower member's values are the left operand on both sides, so both get the same bits, and rank order is kept. A round may not
// overwrite what it sends, so rounds alternate between the output and scratch. Ranks beyond a power of two are folded (neighbours.h).
//
// Cost: log2(n) hops, log2(n) times the buffer sent and reduced: best for small buffers.
#include "plan/algorithms.h"
#include "plan/builder.h"
#include "plan/neighbours.h"
#include "plan/turns.h"

namespace nexar::plan {

Plan recursive_doubling_all_reduce(const Shape& shape) {
  PlanBuilder plan(shape, "recursive_doubling");
  const Fold fold(shape.rank, shape.size);
  if (fold.aside()) {
    plan.send(fold.partner(), plan.input());
    plan.receive(fold.partner(), store_in(plan.output()).ahead());
    return plan.build();
  }

  Slice value = plan.input();
  if (fold.paired()) {
    plan.receive(fold.partner(), reduce_into(plan.output(), value, First::kOwn));
    value = plan.output();
  }
  Turns turns(plan, fold.rounds());
  for (Rank bit = 1; bit < fold.power(); bit <<= 1) {
    const Rank partner = fold.rank_of(fold.member() ^ bit);
    const bool lower = (fold.member() & bit) == 0;
    const Slice next = turns.next(value);
    plan.exchange(partner, value, partner, reduce_into(next, value, lower ? First::kOwn : First::kReceived));
    value = next;
  }
  plan.copy(value, plan.output());
  plan.finish(plan.output());
  if (fold.paired()) plan.send(fold.partner(), plan.output());
  return plan.build();
}

}  // namespace nexar::plan
