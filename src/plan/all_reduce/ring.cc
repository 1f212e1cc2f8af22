// Ring all-reduce: two laps around a ring of n ranks.
//
// The buffer is cut into n chunks. On the first lap each chunk collects one more rank's values at every hop; on the second the finished
// chunks replace the stale ones.
//
//            lap 1, step s                    lap 2, step s
//   sends    chunk r-s    (partial sum)       chunk r-s+1   (finished)
//   gets     chunk r-s-1  (adds its own)      chunk r-s     (keeps it)
//
// What comes on the second lap was made from what this rank gave away on the first, so it is granted ahead. With segments, a segment's
// second lap begins when its first is over, whatever the others do: this is the pipelined ring, and both directions of a pair of ranks are
// busy from beginning to end. From three ranks on the pipelined form runs two rings, one half of the buffer up and the other half down, so
// that both directions of every link are used.
//
// Cost: 2(n-1) hops, 2(n-1)/n of the buffer sent and (n-1)/n reduced by each rank: best for large buffers.
#include "plan/algorithms.h"
#include "plan/patterns.h"

namespace nexar::plan {

Plan ring_all_reduce(const Shape& shape) {
  PlanBuilder plan(shape, "ring");
  if (shape.size == 1) plan.copy(plan.input(), plan.output());
  if (shape.size > 1) all_reduce_around(plan, Ring(shape.rank, shape.size), plan.input(), plan.output());
  return plan.build();
}

Plan pipelined_ring_all_reduce(const Shape& shape) {
  PlanBuilder plan(shape, "pipelined_ring");
  if (shape.size == 1) {
    plan.copy(plan.input(), plan.output());
  } else if (shape.size == 2) {
    all_reduce_around(plan, Ring(shape.rank, shape.size), plan.input(), plan.output());
  } else {
    const Cut halves = Cut::chunks(shape.count, 2);
    all_reduce_around(plan, Ring(shape.rank, shape.size), plan.input().sub(halves.piece(0)), plan.output().sub(halves.piece(0)));
    plan.use_channel(1);
    all_reduce_around(plan, Ring(shape.rank, shape.size, Ring::Direction::kDown), plan.input().sub(halves.piece(1)),
                      plan.output().sub(halves.piece(1)));
  }
  return plan.build();
}

}  // namespace nexar::plan
