#include "nexar/info.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "nexar/version.h"

namespace nexar {
namespace {

TEST(Info, SaysWhatThisBuildIsAndWhatItFound) {
  const Info here = info();
  EXPECT_EQ(here.version, NEXAR_VERSION);
  EXPECT_FALSE(here.compiler.empty());
  EXPECT_GE(here.cores, 1);
  ASSERT_FALSE(here.simd_targets.empty());
  EXPECT_EQ(here.simd, here.simd_targets.front());
  EXPECT_TRUE(here.crypto.starts_with("AES-128-GCM by ")) << here.crypto;
}

}  // namespace
}  // namespace nexar
