// Arrays of small floats to f32 and back: exact one way, rounded to nearest even the other.
#pragma once

#include <cstddef>

#include "nexar/data_type.h"
#include "reduce/kernels.h"

namespace nexar::reduce {

// `type` is f16, bf16, f8e4m3 or f8e5m2. The buffers do not overlap. `table` is for tests.
void widen(DataType type, const void* from, float* to, std::size_t count, const KernelTable& table = kernels());
void narrow(DataType type, const float* from, void* to, std::size_t count, const KernelTable& table = kernels());

}  // namespace nexar::reduce
