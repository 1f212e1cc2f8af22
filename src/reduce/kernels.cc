#include "reduce/kernels.h"

#include <hwy/targets.h>

#include "base/assert.h"
#include "reduce/rows.h"

namespace nexar::reduce {
namespace {

KernelTable make_table_of_chosen_target() {
  KernelTable table;
  fill_float_rows(table);
  fill_half_rows(table);
  fill_quarter_rows(table);
  fill_integer_rows(table);
  return table;
}

}  // namespace

const KernelTable& kernels() {
  static const KernelTable kTable = make_table_of_chosen_target();
  return kTable;
}

// Better targets have lower bits.
std::vector<std::int64_t> targets() {
  std::vector<std::int64_t> found;
  const std::int64_t usable = hwy::SupportedTargets() & HWY_TARGETS;
  for (int bit = 0; bit < 63; ++bit)
    if (const std::int64_t target = std::int64_t{1} << bit; (usable & target) != 0) found.push_back(target);
  return found;
}

std::string_view target_name(std::int64_t target) {
  const std::string_view name = hwy::TargetName(target);
  return name == "AVX3" ? "AVX-512" : name;
}

KernelTable make_kernel_table(std::int64_t target) {
  NEXAR_ASSERT((target & HWY_TARGETS) != 0, "the build carries the target");
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().DeInit();
  KernelTable table = make_table_of_chosen_target();
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
  return table;
}

}  // namespace nexar::reduce
