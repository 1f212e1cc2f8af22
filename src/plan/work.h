// The work of each algorithm: the "Cost" line at the top of its file, as a function.
#pragma once

#include "plan/cost.h"
#include "plan/shape.h"

namespace nexar::plan {

Work no_work(const Shape& shape);  // of v-forms, which are not chosen by cost
Work ring_all_reduce_work(const Shape& shape);
Work pipelined_ring_all_reduce_work(const Shape& shape);
Work halving_doubling_all_reduce_work(const Shape& shape);
Work recursive_doubling_all_reduce_work(const Shape& shape);
Work tree_all_reduce_work(const Shape& shape);
Work rank_ordered_all_reduce_work(const Shape& shape);
Work direct_all_reduce_work(const Shape& shape);
Work two_level_all_reduce_work(const Shape& shape);
Work ring_all_gather_work(const Shape& shape);
Work recursive_doubling_all_gather_work(const Shape& shape);
Work bruck_all_gather_work(const Shape& shape);
Work two_level_all_gather_work(const Shape& shape);
Work ring_reduce_scatter_work(const Shape& shape);
Work halving_reduce_scatter_work(const Shape& shape);
Work rank_ordered_reduce_scatter_work(const Shape& shape);
Work two_level_reduce_scatter_work(const Shape& shape);
Work flat_broadcast_work(const Shape& shape);
Work binomial_broadcast_work(const Shape& shape);
Work chain_broadcast_work(const Shape& shape);
Work two_level_broadcast_work(const Shape& shape);
Work flat_reduce_work(const Shape& shape);
Work binomial_reduce_work(const Shape& shape);
Work chain_reduce_work(const Shape& shape);
Work two_level_reduce_work(const Shape& shape);
Work flat_gather_work(const Shape& shape);
Work binomial_gather_work(const Shape& shape);
Work flat_scatter_work(const Shape& shape);
Work binomial_scatter_work(const Shape& shape);
Work pairwise_all_to_all_work(const Shape& shape);
Work bruck_all_to_all_work(const Shape& shape);
Work hillis_steele_scan_work(const Shape& shape);
Work direct_scan_work(const Shape& shape);
Work hillis_steele_exclusive_scan_work(const Shape& shape);
Work dissemination_barrier_work(const Shape& shape);
Work two_level_barrier_work(const Shape& shape);

}  // namespace nexar::plan
