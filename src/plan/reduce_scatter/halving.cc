// Halving reduce-scatter: partners at half the distance in every round split the slots that they still hold, each reducing the half that
// its own side needs, until one member's slots are left.
//
// Far partners come first, so that every half is a run of slots. Ranks beyond a power of two are folded (neighbours.h): a paired
// member ends with two slots and gives one to its partner. The input is kept: partial sums live in scratch, half of the input's size (all
// of it for paired ranks).
//
// Cost: log2(n) hops, (p-1)/p of the input sent; sizes that are no power of two pay for the whole input once more.
#include "plan/algorithms.h"
#include "plan/builder.h"
#include "plan/neighbours.h"

namespace nexar::plan {
namespace {

// Slots [first, first + count) of the input, wherever their partial sums are now.
struct Held {
  Slice place;
  Extent elements;  // in the input

  Slice at(Extent part) const { return place.sub({part.first - elements.first, part.count}); }
};

}  // namespace

Plan halving_reduce_scatter(const Shape& shape) {
  PlanBuilder plan(shape, "halving");
  const Fold fold(shape.rank, shape.size);
  const Cut slots = shape.input_slots();
  const bool overwrites = shape.alias() == Alias::kOutputInInput;
  if (fold.aside()) {
    plan.send(fold.partner(), plan.input());
    plan.receive(fold.partner(), store_in(plan.output()).ahead());
    return plan.build();
  }

  const Extent all{0, plan.input().count};
  Held held{plan.input(), all};
  if (fold.paired()) {
    held.place = overwrites ? plan.input() : plan.scratch(all.count);
    plan.receive(fold.partner(), reduce_into(held.place, plan.input(), First::kOwn));
  }
  const auto slots_of = [&](Rank first, Rank end) {  // of members [first, end)
    const Rank begin = fold.rank_of(first);
    const Rank stop = end == fold.power() ? shape.size : fold.rank_of(end);
    return slots.pieces(begin, stop - begin);
  };

  Rank low = 0;
  for (Rank half = fold.power() / 2; half > 0; half /= 2) {
    const bool lower = (fold.member() & half) == 0;
    const Rank partner = fold.rank_of(fold.member() ^ half);
    const Extent parts[] = {slots_of(low, low + half), slots_of(low + half, low + 2 * half)};
    const Extent kept = parts[lower ? 0 : 1];
    const Extent given = parts[lower ? 1 : 0];
    const bool from_input = held.place.buffer == Buffer::kInput && !overwrites;
    Slice into = held.at(kept);
    if (half == 1 && !fold.paired()) {
      into = plan.output();
    } else if (from_input) {
      into = plan.scratch(kept.count);
    }
    plan.exchange(partner, held.at(given), partner, reduce_into(into, held.at(kept), lower ? First::kOwn : First::kReceived));
    held = {into, kept};
    if (!lower) low += half;
  }
  plan.finish(held.place);
  if (shape.size == 1 || fold.paired()) plan.copy(held.at(slots.piece(shape.rank)), plan.output());
  if (fold.paired()) plan.send(fold.partner(), held.at(slots.piece(fold.partner())));
  return plan.build();
}

}  // namespace nexar::plan
