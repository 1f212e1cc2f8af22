// Passages that several algorithms have in common.
#pragma once

#include "plan/builder.h"
#include "plan/cut.h"
#include "plan/neighbours.h"

namespace nexar::plan {

// Both rings of neighbours.h go around. First lap of a ring: every piece of `cut` collects one more rank's values at every hop. Piece i
// starts at position i + shift, and ends at the position before it. `into(piece, step)` is where this rank keeps the partial values of a
// piece. Returns the finished piece's place.
template <typename AnyRing, typename Into>
Slice reduce_around(PlanBuilder& plan, const AnyRing& ring, const Cut& cut, Slice own, std::int64_t shift, Into into) {
  const std::int64_t me = ring.position();
  Slice value = own.sub(cut.piece(me - shift));
  for (std::int64_t step = 0; step < ring.size() - 1; ++step) {
    const std::int64_t taken = me - shift - step - 1;
    const Slice place = into(taken, step);
    plan.exchange(ring.next(), value, ring.previous(), reduce_into(place, own.sub(cut.piece(taken)), First::kReceived));
    value = place;
  }
  return value;
}

// Both laps: chunks collect values, then finished ones replace the stale ones. `own` are this rank's values, of the length of `result`.
template <typename AnyRing>
void all_reduce_around(PlanBuilder& plan, const AnyRing& ring, Slice own, Slice result) {
  const Cut cut = Cut::chunks(result.count, ring.size());
  const auto chunk = [&](std::int64_t i) { return result.sub(cut.piece(i)); };
  const std::int64_t me = ring.position();

  plan.finish(reduce_around(plan, ring, cut, own, 0, [&](std::int64_t taken, std::int64_t) { return chunk(taken); }));
  for (Rank step = 0; step < ring.size() - 1; ++step)
    plan.exchange(ring.next(), chunk(me - step + 1), ring.previous(), store_in(chunk(me - step)).ahead());
}

// Receives the values of all children one after the other, own values first, in `into`. Returns where the sum of the subtree is: the input
// itself when there are no children.
Slice reduce_subtree(PlanBuilder& plan, const Tree& tree, Slice into);

// Every rank sends piece q of `own` to rank q, and reduces what it gets of its own piece in rank order, in one go, into `into`.
void reduce_own_piece(PlanBuilder& plan, const Cut& cut, Slice own, Slice into);

// Reduces sources in the order given into `into` as the last reduction. A user op with more than two sources may overwrite only the first
// of them (reduce::Reducer::combine_many): another that lies in `into` is copied away before.
void reduce_in_order(PlanBuilder& plan, std::vector<Slice> sources, Slice into);

}  // namespace nexar::plan
