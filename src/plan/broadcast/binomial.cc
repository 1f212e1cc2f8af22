// Binomial broadcast: whoever has the buffer passes it down the tree, to the largest subtree first.
//
// Cost: log2(n) hops, the buffer sent log2(n) times by the root: best for small buffers.
#include <vector>

#include "plan/algorithms.h"
#include "plan/builder.h"
#include "plan/neighbours.h"

namespace nexar::plan {

Plan binomial_broadcast(const Shape& shape) {
  PlanBuilder plan(shape, "binomial");
  const Tree tree(shape.rank, shape.size, shape.root);
  if (!tree.is_top()) plan.receive(tree.parent(), store_in(plan.output()));
  const std::vector<Rank> children = tree.children();
  for (auto child = children.rbegin(); child != children.rend(); ++child) plan.send(tree.rank_at(*child), plan.output());
  return plan.build();
}

}  // namespace nexar::plan
