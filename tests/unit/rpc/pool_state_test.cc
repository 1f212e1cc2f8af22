#include "rpc/pool_state.h"

#include <random>

#include <gtest/gtest.h>

namespace nexar::rpc {
namespace {

TEST(PoolState, ThreadsAreStartedAsCallsComeUpToTheWorkers) {
  PoolState state({.workers = 2, .spares = 3, .queue = 10});
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(state.admit(), PoolState::Admission::kQueued);
    while (state.wants_thread()) state.thread_added();
  }
  EXPECT_EQ(state.threads(), 2u);
  state.begins();
  state.begins();
  EXPECT_FALSE(state.may_take()) << "as many are active as there are workers";
  EXPECT_FALSE(state.wants_thread());
}

TEST(PoolState, AWaitingHandlerIsReplacedBySparesUntilNoneIsLeft) {
  PoolState state({.workers = 1, .spares = 2, .queue = 10});
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(state.admit(), PoolState::Admission::kQueued) << i;
    ASSERT_TRUE(state.wants_thread()) << i;
    state.thread_added();
    state.begins();
    state.waits();
  }
  EXPECT_TRUE(state.is_stuck());
  EXPECT_EQ(state.admit(), PoolState::Admission::kNoThreadLeft);
  state.resumes();
  EXPECT_FALSE(state.is_stuck());
  EXPECT_EQ(state.admit(), PoolState::Admission::kQueued);
  EXPECT_FALSE(state.may_take()) << "the one that went on is active";
  state.ends();
  EXPECT_TRUE(state.may_take());
}

TEST(PoolState, TheQueueIsBounded) {
  PoolState state({.workers = 1, .spares = 0, .queue = 2});
  EXPECT_EQ(state.admit(), PoolState::Admission::kQueued);
  EXPECT_EQ(state.admit(), PoolState::Admission::kQueued);
  EXPECT_EQ(state.admit(), PoolState::Admission::kFull);
  state.withdrawn();
  EXPECT_EQ(state.admit(), PoolState::Admission::kQueued);
}

TEST(PoolState, WithoutMoreThreadsThoseThatThereAreHaveToDo) {
  PoolState state({.workers = 4, .spares = 4, .queue = 8});
  ASSERT_EQ(state.admit(), PoolState::Admission::kQueued);
  state.thread_added();
  ASSERT_EQ(state.admit(), PoolState::Admission::kQueued);
  state.thread_added();
  state.thread_refused();
  EXPECT_FALSE(state.wants_thread());
  state.begins();
  state.waits();
  EXPECT_TRUE(state.is_stuck()) << "the only thread waits";
}

// Whatever happens in whatever order, the counts stay within their bounds and a queued call is never forgotten: somebody is idle and may
// take it, or is active and will end, or all wait and it is to be refused.
TEST(PoolState, KeepsItsBoundsUnderAnyOrderOfEvents) {
  const PoolLimits limits{.workers = 3, .spares = 4, .queue = 5};
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    PoolState state(limits);
    for (int step = 0; step < 500; ++step) {
      switch (random() % 5) {
        case 0: static_cast<void>(state.admit()); break;
        case 1:
          if (state.idle() > 0 && state.may_take()) state.begins();
          break;
        case 2:
          if (state.active() > 0) state.ends();
          break;
        case 3:
          if (state.active() > 0) state.waits();
          break;
        case 4:
          if (state.waiting() > 0) state.resumes();
          break;
      }
      while (state.wants_thread()) state.thread_added();
      if (state.is_stuck())
        while (state.queued() > 0) state.withdrawn();
      ASSERT_EQ(state.threads(), state.idle() + state.active() + state.waiting()) << "seed " << seed;
      ASSERT_LE(state.threads(), limits.workers + limits.spares) << "seed " << seed;
      ASSERT_LE(state.queued(), limits.queue) << "seed " << seed;
      ASSERT_TRUE(state.queued() == 0 || state.active() > 0 || (state.idle() > 0 && state.may_take())) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace nexar::rpc
