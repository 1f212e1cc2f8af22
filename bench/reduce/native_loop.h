// The yardstick: the loop that anybody would write, compiled with -O3 -march=native.
#pragma once

#include <cstddef>

#include "nexar/data_type.h"
#include "nexar/reduce_op.h"

namespace nexar::bench {

using NativeLoop = void (*)(void* inout, const void* in, std::size_t count);

// inout[i] = op(inout[i], in[i]); null for what C++ has no arithmetic for.
NativeLoop native_loop(DataType type, ReduceOp op);

}  // namespace nexar::bench
