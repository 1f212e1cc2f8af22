#include "io/host.h"

#include <gtest/gtest.h>

namespace nexar::io {
namespace {

TEST(Host, KnowsItsCpuAndCores) {
  const Host here = host();
  EXPECT_FALSE(here.cpu.empty());
  EXPECT_GE(here.cores, 1);
}

}  // namespace
}  // namespace nexar::io
