// Binomial gather: subtrees collect their slots in scratch, in the order of positions, and pass them up in one message (two where the run
// of ranks wraps); the root stores them where they belong.
//
// Cost: log2(n) hops; inner ranks pass on what is not theirs: best for small slots and many ranks.
#include "plan/algorithms.h"
#include "plan/builder.h"
#include "plan/slot_runs.h"

namespace nexar::plan {

Plan binomial_gather(const Shape& shape) {
  PlanBuilder plan(shape, "binomial");
  const Tree tree(shape.rank, shape.size, shape.root);
  const Rank me = tree.position();
  const Cut slots = Cut::slots(shape.count, shape.size);
  const bool leaf = tree.children().empty() && !tree.is_top();
  const Slice held = tree.is_top() ? plan.output() : leaf ? plan.input() : plan.scratch(slots.pieces(0, tree.subtree(me)).count);
  const auto place = [&](const SlotRun& run) {
    return held.sub(tree.is_top() ? slots.pieces(run.rank, run.length) : slots.pieces(run.position - me, run.length));
  };

  plan.copy(plan.input(), place({me, shape.rank, 1}));
  for (const Rank child : tree.children())
    for (const SlotRun& run : subtree_runs(tree, child, shape.size)) plan.receive(tree.rank_at(child), store_in(place(run)));
  if (tree.is_top()) return plan.build();
  for (const SlotRun& run : subtree_runs(tree, me, shape.size)) plan.send(tree.parent(), place(run));
  return plan.build();
}

}  // namespace nexar::plan
