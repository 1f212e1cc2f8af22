// f32 and f64.
#include "reduce/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/float_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "reduce/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nexar::reduce::HWY_NAMESPACE {

void fill_floats(KernelTable& table) {
  fill_float_row<NativeLanes<float>>(table, DataType::kF32);
  fill_float_row<NativeLanes<double>>(table, DataType::kF64);
}

}  // namespace nexar::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nexar::reduce {
HWY_EXPORT(fill_floats);
void fill_float_rows(KernelTable& table) { HWY_DYNAMIC_DISPATCH(fill_floats)(table); }
}  // namespace nexar::reduce
#endif
