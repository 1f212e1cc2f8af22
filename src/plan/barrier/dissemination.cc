// Dissemination barrier: in round k every rank tells the rank 2^k above that it, and everybody it has heard of, has entered.
//
// Messages are of zero bytes. After the last round a rank has heard of everybody.
//
// Cost: ceil(log2(n)) hops.
#include "plan/algorithms.h"
#include "plan/builder.h"

namespace nexar::plan {

Plan dissemination_barrier(const Shape& shape) {
  PlanBuilder plan(shape, "dissemination");
  Slice heard = plan.token();
  for (Rank distance = 1; distance < shape.size; distance *= 2) {
    const Slice next = plan.token();
    plan.exchange((shape.rank + distance) % shape.size, heard, (shape.rank - distance + shape.size) % shape.size,
                  reduce_into(next, heard, First::kReceived));
    heard = next;
  }
  return plan.build();
}

}  // namespace nexar::plan
