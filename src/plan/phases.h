// Operations that are two plans, one after the other.
//
// The runner makes the plan of the first phase, runs it, lets whoever it concerns use what is there, and makes the second. Both belong to
// one operation: the messages of the second are numbered apart (Shape::phase), so that a fast rank's second phase cannot be taken for a
// slow rank's first.
#pragma once

#include <cstdint>
#include <span>

#include "nexar/result.h"
#include "plan/shape.h"

namespace nexar::plan {

// all_reduce_rs_ag: the buffer is cut into chunks; after `scatter` this rank's chunk of it is reduced, the others hold nothing of meaning;
// the application may change its chunk; after `gather` every rank has all chunks. Both are in place.
struct ScatterGather {
  Shape scatter;
  Shape gather;
  Extent own;  // this rank's chunk: what lies between
};

// `shape.operation` is kAllReduceRsAg; count, flags, segment and element_bytes apply to both phases.
Result<ScatterGather> scatter_and_gather(const Shape& shape);

// broadcast_bytes, all_gather_bytes, gather_bytes: first every length travels to where it is needed, as one u64, then the bytes do.
//
//                     lengths phase: input -> output           payload phase: `lengths` given
//   broadcast_bytes   the root's length, one buffer of 1       {the root's length}
//   all_gather_bytes  own length -> all lengths, n             all lengths
//   gather_bytes      own length -> n lengths at the root      all lengths at the root, {own length} elsewhere
Result<Shape> lengths_phase(const Shape& shape);
Result<Shape> payload_phase(const Shape& shape, std::span<const std::uint64_t> lengths);

}  // namespace nexar::plan
