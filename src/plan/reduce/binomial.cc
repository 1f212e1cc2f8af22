// Binomial reduce: partial sums go up a binomial tree. Ranks that are not the root keep them in scratch, because only the root's buffer is
// written.
//
// Where rank order has to be kept the top of the tree is rank 0, whose subtrees are runs of ranks, and the result takes one more hop to the
// root.
//
// Cost: log2(n) hops, each with the whole buffer: best for small buffers.
#include "plan/algorithms.h"
#include "plan/patterns.h"

namespace nexar::plan {

Plan binomial_reduce(const Shape& shape) {
  PlanBuilder plan(shape, "binomial");
  const Rank top = shape.ordered ? 0 : shape.root;
  const Tree tree(shape.rank, shape.size, top);
  const bool has_children = !tree.children().empty();
  const Slice value = reduce_subtree(plan, tree, shape.is_root() || !has_children ? plan.output() : plan.scratch(shape.count));

  if (!tree.is_top()) plan.send(tree.parent(), value);
  if (tree.is_top() && !shape.is_root()) plan.send(shape.root, value);
  if (!shape.is_root()) return plan.build();
  if (tree.is_top()) plan.copy(value, plan.output());
  if (!tree.is_top()) plan.receive(top, store_in(plan.output()).ahead());
  plan.finish(plan.output());
  return plan.build();
}

}  // namespace nexar::plan
