#include "collective/direct/calibrate.h"

#include <gtest/gtest.h>

#include "direct_world.h"

namespace nexar::test {
namespace {

using collective::direct::Area;
using collective::direct::Outcome;

// Time passes only when slots are filled as `slow` says: each look at the clock then finds it a microsecond later.
class PartialClock : public io::Clock {
 public:
  PartialClock(const Area& area, bool slow_is_streamed) : area_(area), slow_is_streamed_(slow_is_streamed) {}
  base::Time now() const override {
    if ((area_.tuning().stream_in != SIZE_MAX) == slow_is_streamed_) now_ += std::chrono::microseconds(1);
    return now_;
  }
  std::chrono::sys_seconds wall() const override { return {}; }

 private:
  const Area& area_;
  bool slow_is_streamed_;
  mutable base::Time now_{};
};

TEST(Calibrate, AllRanksTakeWhatIsFasterForAllTogether) {
  for (const int slow_ranks : {1, 2}) {  // for how many streaming is the slow way
    DirectWorld world(3);
    world.run([&](Rank rank) {
      Area& area = world.area(rank);
      const PartialClock clock(area, rank < slow_ranks);
      Endless endless;
      ASSERT_EQ(calibrate(area, 1, clock, endless, kPoliteSpin), Outcome::kDone);
      EXPECT_EQ(area.tuning().stream_in == SIZE_MAX, slow_ranks >= 2) << slow_ranks;
    });
  }
}

TEST(Calibrate, LeavesTheAreaAsItWasWhenARankDoesNotTakePart) {
  DirectWorld world(2);
  world.area(1).fail(1);
  const auto before = world.area(0).tuning().stream_in;
  Endless endless;
  EXPECT_EQ(calibrate(world.area(0), 1, io::real_clock(), endless, kPoliteSpin), Outcome::kEnded);
  EXPECT_EQ(world.area(0).tuning().stream_in, before);
}

}  // namespace
}  // namespace nexar::test
