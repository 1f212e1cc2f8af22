#include "plan/algorithms.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "plan/work.h"

namespace nexar::plan {
namespace {

using enum OperationId;

// Sorted by operation. In v-forms sizes are not agreed, so the first legal row is what is used.
constexpr auto kAlgorithms = std::to_array<Algorithm>({
    {kAllReduce, "ring", ring_all_reduce, ring_all_reduce_work, kPlain},
    {kAllReduce, "pipelined_ring", pipelined_ring_all_reduce, pipelined_ring_all_reduce_work, kSegmented},
    {kAllReduce, "halving_doubling", halving_doubling_all_reduce, halving_doubling_all_reduce_work, kOrdered | kSegmented},
    {kAllReduce, "recursive_doubling", recursive_doubling_all_reduce, recursive_doubling_all_reduce_work, kOrdered},
    {kAllReduce, "tree", tree_all_reduce, tree_all_reduce_work, kOrdered | kSegmented},
    {kAllReduce, "rank_ordered", rank_ordered_all_reduce, rank_ordered_all_reduce_work, kOrdered | kReproducible | kSegmented},
    {kAllReduce, "direct", direct_all_reduce, direct_all_reduce_work, kOrdered | kReproducible},
    {kAllReduce, "two_level", two_level_all_reduce, two_level_all_reduce_work, kTwoLevel | kSegmented},
    {kReduceScatter, "ring", ring_reduce_scatter, ring_reduce_scatter_work, kSegmented},
    {kReduceScatter, "halving", halving_reduce_scatter, halving_reduce_scatter_work, kSegmented},
    {kReduceScatter, "rank_ordered", rank_ordered_reduce_scatter, rank_ordered_reduce_scatter_work, kOrdered | kReproducible | kSegmented},
    {kReduceScatter, "two_level", two_level_reduce_scatter, two_level_reduce_scatter_work, kTwoLevel | kSegmented},
    {kAllGather, "ring", ring_all_gather, ring_all_gather_work, kSegmented},
    {kAllGather, "recursive_doubling", recursive_doubling_all_gather, recursive_doubling_all_gather_work, kPowerOfTwo | kSegmented},
    {kAllGather, "bruck", bruck_all_gather, bruck_all_gather_work, kSegmented},
    {kAllGather, "two_level", two_level_all_gather, two_level_all_gather_work, kTwoLevel | kSegmented},
    {kBroadcast, "binomial", binomial_broadcast, binomial_broadcast_work, kSegmented},
    {kBroadcast, "chain", chain_broadcast, chain_broadcast_work, kSegmented},
    {kBroadcast, "flat", flat_broadcast, flat_broadcast_work, kSegmented},
    {kBroadcast, "two_level", two_level_broadcast, two_level_broadcast_work, kTwoLevel | kSegmented},
    {kReduce, "binomial", binomial_reduce, binomial_reduce_work, kOrdered | kSegmented},
    {kReduce, "chain", chain_reduce, chain_reduce_work, kOrdered | kSegmented},
    {kReduce, "flat", flat_reduce, flat_reduce_work, kOrdered | kReproducible | kSegmented},
    {kReduce, "two_level", two_level_reduce, two_level_reduce_work, kTwoLevel | kSegmented},
    {kGather, "flat", flat_gather, flat_gather_work, kSegmented},
    {kGather, "binomial", binomial_gather, binomial_gather_work, kSegmented},
    {kScatter, "flat", flat_scatter, flat_scatter_work, kSegmented},
    {kScatter, "binomial", binomial_scatter, binomial_scatter_work, kSegmented},
    {kAllToAll, "pairwise", pairwise_all_to_all, pairwise_all_to_all_work, kSegmented},
    {kAllToAll, "bruck", bruck_all_to_all, bruck_all_to_all_work, kPlain},
    {kAllGatherV, "ring", ring_all_gather, no_work, kSegmented},
    {kAllGatherV, "bruck", bruck_all_gather, no_work, kSegmented},
    {kReduceScatterV, "ring", ring_reduce_scatter, no_work, kSegmented},
    {kReduceScatterV, "halving", halving_reduce_scatter, no_work, kSegmented},
    {kReduceScatterV, "rank_ordered", rank_ordered_reduce_scatter, no_work, kOrdered | kReproducible | kSegmented},
    {kAllToAllV, "pairwise", pairwise_all_to_all, no_work, kSegmented},
    {kGatherV, "flat", flat_gather, no_work, kSegmented},
    {kScatterV, "flat", flat_scatter, no_work, kSegmented},
    {kScan, "hillis_steele", hillis_steele_scan, hillis_steele_scan_work, kOrdered},
    {kScan, "direct", direct_scan, direct_scan_work, kOrdered | kReproducible},
    {kExclusiveScan, "hillis_steele", hillis_steele_exclusive_scan, hillis_steele_exclusive_scan_work, kOrdered},
    {kExclusiveScan, "direct", direct_exclusive_scan, direct_scan_work, kOrdered | kReproducible},
    {kBarrier, "dissemination", dissemination_barrier, dissemination_barrier_work, kPlain},
    {kBarrier, "two_level", two_level_barrier, two_level_barrier_work, kTwoLevel},
});

}  // namespace

bool Algorithm::legal(const Shape& shape) const {
  if (shape.operation != operation) return false;
  if (shape.reproducible && !has(kReproducible)) return false;
  if (shape.ordered && !has(kOrdered)) return false;
  if (has(kTwoLevel) && !shape.hosts.has_levels()) return false;
  return !has(kPowerOfTwo) || std::has_single_bit(static_cast<std::uint32_t>(shape.size));
}

std::span<const Algorithm> algorithms_of(OperationId operation) {
  const auto is_it = [&](const Algorithm& algorithm) { return algorithm.operation == operation; };
  const auto first = std::find_if(kAlgorithms.begin(), kAlgorithms.end(), is_it);
  const auto end = std::find_if_not(first, kAlgorithms.end(), is_it);
  return {first, end};
}

const Algorithm* find_algorithm(OperationId operation, std::string_view name) {
  for (const Algorithm& algorithm : algorithms_of(operation))
    if (algorithm.name == name) return &algorithm;
  return nullptr;
}

Result<Plan> make_plan(const Shape& shape, const Algorithm& algorithm) {
  if (auto checked = shape.check(); !checked) return std::move(checked).error();
  if (!algorithm.legal(shape))
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{} by {} does not do what is asked: {}", to_string(algorithm.operation), algorithm.name, shape.to_text()));
  if (algorithm.has(kSegmented) || shape.segment == 0) return algorithm.build(shape);
  Shape whole = shape;
  whole.segment = 0;
  return algorithm.build(whole);
}

}  // namespace nexar::plan
