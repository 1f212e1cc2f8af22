// Each fills its rows of the table with the kernels of the target that Highway has chosen. One source file each, so that they compile
// side by side.
#pragma once

#include "reduce/kernels.h"

namespace nexar::reduce {

void fill_float_rows(KernelTable& table);    // f32, f64
void fill_half_rows(KernelTable& table);     // f16, bf16
void fill_quarter_rows(KernelTable& table);  // f8e4m3, f8e5m2
void fill_integer_rows(KernelTable& table);  // i8 ... u64, bool

}  // namespace nexar::reduce
