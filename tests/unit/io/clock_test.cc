#include "io/clock.h"

#include <ctime>

#include <gtest/gtest.h>

namespace nexar::io {
namespace {

TEST(RealClock, NeverGoesBackwards) {
  base::Time last = real_clock().now();
  for (int i = 0; i < 1000; ++i) {
    const base::Time now = real_clock().now();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(RealClock, KnowsTheDate) {
  const std::time_t before = std::time(nullptr);
  const std::time_t wall = std::chrono::system_clock::to_time_t(real_clock().wall());
  EXPECT_GE(wall, before - 1);  // time() may be one tick behind
  EXPECT_LE(wall, std::time(nullptr) + 1);
}

}  // namespace
}  // namespace nexar::io
