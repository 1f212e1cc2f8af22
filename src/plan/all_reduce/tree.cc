// Tree all-reduce: a reduction up a binomial tree to rank 0 and a broadcast down the same tree.
//
// Subtrees are runs of ranks and children come in rank order, so rank order is kept. With segments the broadcast of one follows its
// reduction while others still go up.
//
// Cost: 2 log2(n) hops, each with the whole buffer; few messages in all, so it suits many ranks with little to send.
#include <vector>

#include "plan/algorithms.h"
#include "plan/patterns.h"

namespace nexar::plan {

Plan tree_all_reduce(const Shape& shape) {
  PlanBuilder plan(shape, "tree");
  const Tree tree(shape.rank, shape.size, 0);
  const Slice value = reduce_subtree(plan, tree, plan.output());
  if (tree.is_top()) {
    plan.copy(value, plan.output());
    plan.finish(plan.output());
  } else {
    plan.send(tree.parent(), value);
    plan.receive(tree.parent(), store_in(plan.output()).ahead());
  }
  const std::vector<Rank> children = tree.children();
  for (auto child = children.rbegin(); child != children.rend(); ++child) plan.send(tree.rank_at(*child), plan.output());
  return plan.build();
}

}  // namespace nexar::plan
