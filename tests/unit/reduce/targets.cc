#include "reduce/targets.h"

namespace nexar::test {

const std::vector<Target>& all_targets() {
  static const std::vector<Target> kTargets = [] {
    std::vector<Target> targets;
    for (const std::int64_t target : reduce::targets())
      targets.push_back({std::string(reduce::target_name(target)), reduce::make_kernel_table(target)});
    return targets;
  }();
  return kTargets;
}

std::string type_name(const testing::TestParamInfo<DataType>& instance) { return std::string(to_string(instance.param)); }

}  // namespace nexar::test
