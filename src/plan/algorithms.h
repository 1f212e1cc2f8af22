// Every algorithm of this layer: a function from a shape to a plan, one file each under <operation>/, and the table that names them.
//
// The functions take shapes that passed check() and that their row of the table calls legal; make_plan() sees to both.
#pragma once

#include <span>
#include <string_view>

#include "nexar/result.h"
#include "plan/cost.h"
#include "plan/plan.h"
#include "plan/shape.h"

namespace nexar::plan {

Plan ring_all_reduce(const Shape& shape);
Plan pipelined_ring_all_reduce(const Shape& shape);
Plan halving_doubling_all_reduce(const Shape& shape);
Plan recursive_doubling_all_reduce(const Shape& shape);
Plan tree_all_reduce(const Shape& shape);
Plan rank_ordered_all_reduce(const Shape& shape);
Plan direct_all_reduce(const Shape& shape);
Plan two_level_all_reduce(const Shape& shape);
Plan ring_all_gather(const Shape& shape);
Plan recursive_doubling_all_gather(const Shape& shape);
Plan bruck_all_gather(const Shape& shape);
Plan two_level_all_gather(const Shape& shape);
Plan ring_reduce_scatter(const Shape& shape);
Plan halving_reduce_scatter(const Shape& shape);
Plan rank_ordered_reduce_scatter(const Shape& shape);
Plan two_level_reduce_scatter(const Shape& shape);
Plan flat_broadcast(const Shape& shape);
Plan binomial_broadcast(const Shape& shape);
Plan chain_broadcast(const Shape& shape);
Plan two_level_broadcast(const Shape& shape);
Plan flat_reduce(const Shape& shape);
Plan binomial_reduce(const Shape& shape);
Plan chain_reduce(const Shape& shape);
Plan two_level_reduce(const Shape& shape);
Plan flat_gather(const Shape& shape);
Plan binomial_gather(const Shape& shape);
Plan flat_scatter(const Shape& shape);
Plan binomial_scatter(const Shape& shape);
Plan pairwise_all_to_all(const Shape& shape);
Plan bruck_all_to_all(const Shape& shape);
Plan hillis_steele_scan(const Shape& shape);
Plan direct_scan(const Shape& shape);
Plan hillis_steele_exclusive_scan(const Shape& shape);
Plan direct_exclusive_scan(const Shape& shape);
Plan dissemination_barrier(const Shape& shape);
Plan two_level_barrier(const Shape& shape);

// What an algorithm may be used for.
enum Trait : unsigned {
  kPlain = 0,
  kOrdered = 1,       // keeps rank order: for ops that do not commute
  kReproducible = 2,  // and accumulates in one place
  kSegmented = 4,     // gains from segments; others are given whole chunks
  kPowerOfTwo = 8,    // needs a group of such a size
  kTwoLevel = 16,     // needs several hosts, one of them with several ranks
};

struct Algorithm {
  OperationId operation;
  std::string_view name;
  Plan (*build)(const Shape& shape);
  Work (*work)(const Shape& shape);
  unsigned traits;

  bool has(Trait trait) const { return (traits & trait) != 0; }

  // Whether it does what the shape asks for.
  bool legal(const Shape& shape) const;
};

// Those of an operation, the one to prefer first when nothing else decides; empty for operations without plans of their own.
std::span<const Algorithm> algorithms_of(OperationId operation);

// Null when there is none of that name.
const Algorithm* find_algorithm(OperationId operation, std::string_view name);

// The plan for this rank; transfers are cut only by algorithms that gain from it. kInvalidArgument or kUnsupported when the shape is wrong
// or the algorithm is not legal for it.
Result<Plan> make_plan(const Shape& shape, const Algorithm& algorithm);

}  // namespace nexar::plan
