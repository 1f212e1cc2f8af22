// f16 and bf16.
#include "reduce/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/half_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "reduce/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nexar::reduce::HWY_NAMESPACE {

void fill_halves(KernelTable& table) {
  fill_small_float_row<F16Lanes, FusedSum>(table, DataType::kF16);
  fill_small_float_row<Bf16Lanes>(table, DataType::kBf16);
}

}  // namespace nexar::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nexar::reduce {
HWY_EXPORT(fill_halves);
void fill_half_rows(KernelTable& table) { HWY_DYNAMIC_DISPATCH(fill_halves)(table); }
}  // namespace nexar::reduce
#endif
