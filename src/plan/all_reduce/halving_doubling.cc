// Halving and doubling all-reduce: in round k partners at distance 2^k split what they still hold, each reducing one half; then the same
// rounds backwards, each giving the other its finished part.
//
//   members 0..3, halving     round 0            round 1
//     0                       keeps [0, 1/2)     keeps [0, 1/4)
//     1                       keeps [1/2, 1)     keeps [1/2, 3/4)
//     2                       keeps [0, 1/2)     keeps [1/4, 1/2)
//     3                       keeps [1/2, 1)     keeps [3/4, 1)
//
// The lower member's values are always the left operand, and members that have met are neighbours: rank order is kept. Ranks beyond a
// power of two are folded (neighbours.h).
//
// Cost: 2 log2(n) hops, 2(p-1)/p of the buffer sent; sizes that are no power of two pay for the whole buffer twice more.
#include <algorithm>
#include <vector>

#include "plan/algorithms.h"
#include "plan/builder.h"
#include "plan/neighbours.h"

namespace nexar::plan {
namespace {

struct Round {
  Rank partner;
  Extent given;  // what the partner reduced and will give back
};

}  // namespace

Plan halving_doubling_all_reduce(const Shape& shape) {
  PlanBuilder plan(shape, "halving_doubling");
  const Fold fold(shape.rank, shape.size);
  const Slice result = plan.output();
  if (fold.aside()) {
    plan.send(fold.partner(), plan.input());
    plan.receive(fold.partner(), store_in(result).ahead());
    return plan.build();
  }

  Slice value = plan.input();
  if (fold.paired()) {
    plan.receive(fold.partner(), reduce_into(result, value, First::kOwn));
    value = result;
  }

  std::vector<Round> rounds;
  Extent mine{0, shape.count};
  for (Rank bit = 1; bit < fold.power(); bit <<= 1) {
    const Rank partner = fold.rank_of(fold.member() ^ bit);
    const bool lower = (fold.member() & bit) == 0;
    const Cut halves = Cut::chunks(mine.count, 2);
    const Extent half[] = {{mine.first, halves.piece(0).count}, {mine.first + halves.piece(0).count, halves.piece(1).count}};
    const Extent kept = half[lower ? 0 : 1];
    const Extent given = half[lower ? 1 : 0];
    plan.exchange(partner, value.sub(given), partner,
                  reduce_into(result.sub(kept), value.sub(kept), lower ? First::kOwn : First::kReceived));
    rounds.push_back({partner, given});
    value = result;
    mine = kept;
  }
  if (shape.size == 1) plan.copy(plan.input(), result);
  plan.finish(result.sub(mine));

  std::reverse(rounds.begin(), rounds.end());
  for (const auto& [partner, given] : rounds) {
    plan.exchange(partner, result.sub(mine), partner, store_in(result.sub(given)).ahead());
    mine = {std::min(mine.first, given.first), mine.count + given.count};
  }
  if (fold.paired()) plan.send(fold.partner(), result);
  return plan.build();
}

}  // namespace nexar::plan
