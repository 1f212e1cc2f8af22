#include "cluster/call_schedule.h"

#include <gtest/gtest.h>

namespace nexar::cluster {
namespace {

using namespace std::chrono_literals;

constexpr base::Time kStart{1h};

TEST(CallSchedule, CallsTheNextCandidateWhenTheOneBeforeHasHadItsTime) {
  CallSchedule schedule(3, kStart);
  EXPECT_EQ(schedule.take(kStart), 0u);
  EXPECT_EQ(schedule.take(kStart), std::nullopt);
  EXPECT_EQ(schedule.next(), kStart + kCandidateStagger);
  EXPECT_EQ(schedule.take(kStart + kCandidateStagger), 1u);
  EXPECT_EQ(schedule.take(kStart + 2 * kCandidateStagger), 2u);
  EXPECT_EQ(schedule.next(), base::Time::max()) << "all are being called";
}

TEST(CallSchedule, GivesACallMoreTimeWhileOtherPeersAnswer) {
  CallSchedule schedule(2, kStart);
  schedule.other_answered(kStart, 1s);
  EXPECT_EQ(schedule.take(kStart), 0u) << "nothing was being called that could be waited for";
  schedule.other_answered(kStart + 200ms, 200ms);
  EXPECT_EQ(schedule.next(), kStart + 200ms + kCandidateStagger);
  schedule.other_answered(kStart + 400ms, 400ms);
  EXPECT_EQ(schedule.next(), kStart + 800ms) << "as long as the other took";
  schedule.other_answered(kStart + 700ms, 10s);
  EXPECT_EQ(schedule.next(), kStart + 700ms + kStaggerMax);
  EXPECT_EQ(schedule.take(kStart + 700ms + kStaggerMax), 1u);
}

TEST(CallSchedule, StaggersByWhatItIsTold) {
  CallSchedule schedule(2, kStart, 1s);
  EXPECT_EQ(schedule.take(kStart), 0u);
  EXPECT_EQ(schedule.next(), kStart + 1s);
}

TEST(CallSchedule, GoesOnAtOnceWhenACandidateFails) {
  CallSchedule schedule(2, kStart);
  EXPECT_EQ(schedule.take(kStart), 0u);
  schedule.failed(0, false, kStart + 1ms, 1);
  EXPECT_EQ(schedule.take(kStart + 1ms), 1u);
}

TEST(CallSchedule, WaitsLongerBeforeEachRetryUpToALimitAndNeverLessThanHalf) {
  CallSchedule schedule(1, kStart);
  base::Time now = kStart;
  base::Duration expected = kRetryFirst;
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(schedule.take(now), 0u) << i;
    schedule.failed(0, true, now, i % 2 == 0 ? 1.0 : 0.0);
    EXPECT_EQ(schedule.next(), now + (i % 2 == 0 ? expected : expected / 2)) << i;
    EXPECT_EQ(schedule.take(schedule.next() - 1ns), std::nullopt);
    now = schedule.next();
    expected = std::min(2 * expected, kRetryMax);
  }
  EXPECT_EQ(expected, kRetryMax);
}

TEST(CallSchedule, KeepsToACandidateThatWasReachedUntilItCannotBeReached) {
  CallSchedule schedule(2, kStart);
  EXPECT_EQ(schedule.take(kStart), 0u);
  EXPECT_EQ(schedule.take(kStart + kCandidateStagger), 1u);
  schedule.reached(1);
  schedule.failed(0, false, kStart + 300ms, 0);  // aborted, because the other was there
  EXPECT_EQ(schedule.take(kStart + 10s), std::nullopt);
  schedule.failed(1, true, kStart + 10s, 0);  // told to come again
  EXPECT_EQ(schedule.take(kStart + 20s), 1u);
  schedule.failed(1, false, kStart + 21s, 0);  // no answer any more
  EXPECT_EQ(schedule.take(kStart + 30s), 0u) << "due for longer";
}

TEST(CallSchedule, OfNobodyHasNothingToSay) {
  CallSchedule schedule(0, kStart);
  EXPECT_EQ(schedule.take(kStart), std::nullopt);
  EXPECT_EQ(schedule.next(), base::Time::max());
}

}  // namespace
}  // namespace nexar::cluster
