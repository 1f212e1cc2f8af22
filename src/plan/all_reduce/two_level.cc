// Two-level all-reduce: inside each host every rank reduces its own slice, carries it between hosts, and gives the result to the others.
//
//   1. inside    one lap around the ranks of the host: the rank at position p has the host's sum of slice p
//   2. between   both laps of a ring for each strip (hosts.h), among the ranks that look after it, one of each host
//   3. inside    one lap: the finished slices go round
//
// All ranks of a host send between hosts at once, each its own slice, and the buffer crosses a host's line only as often as if the host
// were one rank. Hosts may have different numbers of ranks, and their ranks any numbers. With segments all three overlap. What comes in 3
// was made from what this rank gave away in 1, so it is granted ahead, as on the second lap of a ring. No scratch.
//
// Cost, on h hosts of m ranks: 2(m-1) hops inside with 2(m-1)/m of the buffer sent by each rank, 2(h-1) hops between with 2(h-1)/h of the
// buffer sent by each host: best for large buffers.
#include <vector>

#include "plan/algorithms.h"
#include "plan/patterns.h"

namespace nexar::plan {

Plan two_level_all_reduce(const Shape& shape) {
  PlanBuilder plan(shape, "two_level");
  const Rank here = shape.hosts.host_of(shape.rank);
  const PartRing inside(shape.hosts.ranks(here), shape.hosts.position(shape.rank));
  const Cut cut = Cut::chunks(shape.count, inside.size());
  const auto slice = [&](std::int64_t i) { return plan.output().sub(cut.piece(i)); };
  const std::int64_t me = inside.position();

  const Slice sum = reduce_around(plan, inside, cut, plan.input(), 1, [&](std::int64_t taken, std::int64_t) { return slice(taken); });

  const Strips strips(shape.hosts, shape.count);
  for (const Extent& strip : strips.extents()) {
    if (strips.owner(here, strip) != shape.rank) continue;
    const Extent part{strip.first - cut.piece(me).first, strip.count};
    const std::vector<Rank> owners = strips.owners(strip);
    all_reduce_around(plan, PartRing(owners, here), sum.sub(part), slice(me).sub(part));
  }

  for (Rank step = 0; step < inside.size() - 1; ++step)
    plan.exchange(inside.next(), slice(me - step), inside.previous(), store_in(slice(me - step - 1)).ahead());
  return plan.build();
}

}  // namespace nexar::plan
