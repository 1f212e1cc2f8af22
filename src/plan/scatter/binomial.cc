// Binomial scatter: the slots of a subtree go down the tree in one message (two where the run of ranks wraps), and inner ranks pass on what
// is not theirs.
//
// Cost: log2(n) hops; the root sends n-1 slots in log2(n) messages: best for small slots and many ranks.
#include <vector>

#include "plan/algorithms.h"
#include "plan/builder.h"
#include "plan/slot_runs.h"

namespace nexar::plan {

Plan binomial_scatter(const Shape& shape) {
  PlanBuilder plan(shape, "binomial");
  const Tree tree(shape.rank, shape.size, shape.root);
  const Rank me = tree.position();
  const Cut slots = Cut::slots(shape.count, shape.size);
  const std::vector<Rank> children = tree.children();
  const bool leaf = children.empty() && !tree.is_top();
  const Slice held = tree.is_top() ? plan.input() : leaf ? plan.output() : plan.scratch(slots.pieces(0, tree.subtree(me)).count);
  const auto place = [&](const SlotRun& run) {
    return held.sub(tree.is_top() ? slots.pieces(run.rank, run.length) : slots.pieces(run.position - me, run.length));
  };

  if (!tree.is_top())
    for (const SlotRun& run : subtree_runs(tree, me, shape.size)) plan.receive(tree.parent(), store_in(place(run)));
  for (auto child = children.rbegin(); child != children.rend(); ++child)
    for (const SlotRun& run : subtree_runs(tree, *child, shape.size)) plan.send(tree.rank_at(*child), place(run));
  plan.copy(place({me, shape.rank, 1}), plan.output());
  return plan.build();
}

}  // namespace nexar::plan
