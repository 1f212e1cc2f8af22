#include "plan/patterns.h"

#include <utility>

namespace nexar::plan {

Slice reduce_subtree(PlanBuilder& plan, const Tree& tree, Slice into) {
  Slice value = plan.input();
  for (const Rank child : tree.children()) {
    plan.receive(tree.rank_at(child), reduce_into(into, value, First::kOwn));
    value = into;
  }
  return value;
}

void reduce_own_piece(PlanBuilder& plan, const Cut& cut, Slice own, Slice into) {
  const Rank rank = plan.shape().rank;
  const Rank size = plan.shape().size;
  std::vector<Slice> sources(static_cast<std::size_t>(size));
  sources[static_cast<std::size_t>(rank)] = own.sub(cut.piece(rank));
  for (Rank step = 1; step < size; ++step) {
    const Rank to = (rank + step) % size;
    const Rank from = (rank - step + size) % size;
    Slice& source = sources[static_cast<std::size_t>(from)];
    source = plan.scratch(cut.piece(rank).count);
    plan.exchange(to, own.sub(cut.piece(to)), from, store_in(source));
  }
  reduce_in_order(plan, std::move(sources), into);
}

void reduce_in_order(PlanBuilder& plan, std::vector<Slice> sources, Slice into) {
  if (sources.size() == 1) return plan.copy(sources[0], into);
  for (std::size_t i = 1; i < sources.size() && sources.size() > 2; ++i) {
    if (!sources[i].overlaps(into)) continue;
    const Slice away = plan.scratch(into.count);
    plan.copy(sources[i], away);
    sources[i] = away;
  }
  plan.reduce(sources, into, PlanBuilder::Last::kYes);
}

}  // namespace nexar::plan
