// The values that ranks put into collectives to have the results checked, and what those results must be.
//
// Values differ by rank and by element, so that a part that is missing, taken twice or in the wrong place shows. Those of reductions are
// chosen so that every order of operands gives the same bits: integers wrap in any order; floats are added as whole numbers, and multiplied
// as powers of two, that leave no rounding. A small float has room for a few such numbers only: of more ranks than that, a different few
// have numbers for each element, and the others give what changes nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "nexar/data_type.h"
#include "nexar/ids.h"
#include "nexar/reduce_op.h"

namespace nexar::bench {

class Values {
 public:
  // Without an op for what is only moved. `op` has a meaning on `type`.
  Values(DataType type, std::optional<ReduceOp> op, int ranks, std::uint64_t seed) : type_(type), op_(op), ranks_(ranks), seed_(seed) {}

  DataType type() const { return type_; }

  // Elements [first, first + count) of what `rank` gives.
  void fill(Rank rank, std::uint64_t first, std::uint64_t count, std::byte* out) const;

  // The same elements reduced over ranks 0 to `ranks` - 1, by plain scalar code. Of no ranks: the neutral element.
  void reduce(int ranks, std::uint64_t first, std::uint64_t count, std::byte* out) const;

 private:
  DataType type_;
  std::optional<ReduceOp> op_;
  int ranks_;
  std::uint64_t seed_;
};

}  // namespace nexar::bench
