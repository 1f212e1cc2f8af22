// The kernels of every instruction set that the build carries and this CPU can run.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "reduce/kernels.h"

namespace nexar::test {

struct Target {
  std::string name;
  reduce::KernelTable table;
};

const std::vector<Target>& all_targets();

// Names the instances of a test that takes a type.
std::string type_name(const testing::TestParamInfo<DataType>& instance);

}  // namespace nexar::test
