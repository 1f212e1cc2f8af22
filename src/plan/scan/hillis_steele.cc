// Hillis-Steele scan: in round k every rank adds what the rank 2^k below has, which covers the 2^k ranks before its own run.
//
// What comes is from lower ranks and is the left operand: rank order is kept. A round may not overwrite what it sends, so rounds alternate
// between the output and scratch. The exclusive form first shifts everything up by one rank, then scans ranks 1 to n-1.
//
// Cost: ceil(log2(n)) hops (one more for the exclusive form), each with the whole buffer.
#include "plan/algorithms.h"
#include "plan/builder.h"
#include "plan/turns.h"

namespace nexar::plan {
namespace {

// Scans `value` over ranks lowest, lowest + 1, ... n-1, of which this is one.
void scan_from(PlanBuilder& plan, Rank lowest, Slice value, Turns& turns) {
  const Rank rank = plan.shape().rank;
  for (Rank distance = 1; distance < plan.shape().size - lowest; distance *= 2) {
    if (rank + distance < plan.shape().size) plan.send(rank + distance, value);
    if (rank - distance < lowest) continue;
    const Slice next = turns.next(value);
    plan.receive(rank - distance, reduce_into(next, value, First::kReceived));
    value = next;
  }
  plan.copy(value, plan.output());
  plan.finish(plan.output());
}

// How often a rank receives when it is `above` ranks above the lowest.
int receives(Rank above) {
  int rounds = 0;
  for (Rank distance = 1; distance <= above; distance *= 2) ++rounds;
  return rounds;
}

}  // namespace

Plan hillis_steele_scan(const Shape& shape) {
  PlanBuilder plan(shape, "hillis_steele");
  Turns turns(plan, receives(shape.rank));
  scan_from(plan, 0, plan.input(), turns);
  return plan.build();
}

Plan hillis_steele_exclusive_scan(const Shape& shape) {
  PlanBuilder plan(shape, "hillis_steele");
  if (shape.rank + 1 < shape.size) plan.send(shape.rank + 1, plan.input());
  if (shape.rank == 0) {
    plan.fill_identity(plan.output());
    return plan.build();
  }
  Turns turns(plan, 1 + receives(shape.rank - 1));
  const Slice shifted = turns.next(plan.input());
  plan.receive(shape.rank - 1, store_in(shifted));
  scan_from(plan, 1, shifted, turns);
  return plan.build();
}

}  // namespace nexar::plan
