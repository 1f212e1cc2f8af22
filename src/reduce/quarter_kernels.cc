// f8e4m3 and f8e5m2.
#include "reduce/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/quarter_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "reduce/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nexar::reduce::HWY_NAMESPACE {

void fill_quarters(KernelTable& table) {
  fill_small_float_row<F8e4m3Lanes>(table, DataType::kF8e4m3);
  fill_small_float_row<F8e5m2Lanes>(table, DataType::kF8e5m2);
}

}  // namespace nexar::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nexar::reduce {
HWY_EXPORT(fill_quarters);
void fill_quarter_rows(KernelTable& table) { HWY_DYNAMIC_DISPATCH(fill_quarters)(table); }
}  // namespace nexar::reduce
#endif
