// The neutral element of each op: what an exclusive scan gives rank 0.
#pragma once

#include <cstddef>

#include "nexar/data_type.h"
#include "nexar/reduce_op.h"
#include "nexar/result.h"

namespace nexar::reduce {

// Sets every element to the identity: 0 for sum, avg, or, xor; 1 for prod; all ones for and; +infinity or the largest value for min;
// -infinity or the smallest for max. kInvalidArgument when the op has no meaning on the type.
Result<void> fill_identity(DataType type, ReduceOp op, void* buffer, std::size_t count);

}  // namespace nexar::reduce
