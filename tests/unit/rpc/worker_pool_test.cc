#include "rpc/worker_pool.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

namespace nexar::rpc {
namespace {

using namespace std::chrono_literals;

template <typename F>
bool soon(F&& condition) {
  for (const auto end = std::chrono::steady_clock::now() + 30s; std::chrono::steady_clock::now() < end; std::this_thread::yield())
    if (condition()) return true;
  return condition();
}

// A pool whose calls wait until they are let go, in nexar or not.
struct WorkerPoolTest : testing::Test {
  ~WorkerPoolTest() override { open = true; }

  WorkerPool::Job job() {
    auto made = std::make_shared<Served>();
    made->id = ++next;
    return made;
  }
  std::size_t finished() {
    for (WorkerPool::Job& each : pool->take_finished()) done.push_back(std::move(each));
    return done.size();
  }
  void make(const PoolLimits& limits) {
    pool = std::make_unique<WorkerPool>(
        limits,
        [this](Served&) {
          ++inside;
          if (waits_in_nexar) {
            const WorkerPool::Wait wait;
            const WorkerPool::Wait nested;  // one wait, not two
            soon([&] { return open.load(); });
          } else {
            soon([&] { return open.load(); });
          }
          --inside;
        },
        [this] { ++notified; });
  }

  std::atomic<bool> open = false;
  std::atomic<bool> waits_in_nexar = false;
  std::atomic<int> inside = 0;
  std::atomic<int> notified = 0;
  std::uint64_t next = 0;
  std::vector<WorkerPool::Job> done;
  std::unique_ptr<WorkerPool> pool;
};

TEST_F(WorkerPoolTest, RunsAsManyAtOnceAsItHasWorkersAndAllInTheEnd) {
  make({.workers = 2, .spares = 2, .queue = 10});
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(pool->submit(job()));
  ASSERT_TRUE(soon([&] { return inside == 2; }));
  EXPECT_EQ(pool->threads(), 2u);
  open = true;
  EXPECT_TRUE(soon([&] { return finished() == 6; }));
  EXPECT_GE(notified, 1);
}

TEST_F(WorkerPoolTest, RefusesWhatDoesNotFitItsQueueAndTakesItBack) {
  make({.workers = 1, .spares = 0, .queue = 1});
  ASSERT_TRUE(pool->submit(job()));
  ASSERT_TRUE(soon([&] { return inside == 1; }));
  const WorkerPool::Job queued = job();
  ASSERT_TRUE(pool->submit(queued));
  const Result<void> refused = pool->submit(job());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kOverloaded);
  EXPECT_TRUE(pool->withdraw(queued));
  EXPECT_FALSE(pool->withdraw(queued));
  EXPECT_TRUE(pool->submit(job()));
  open = true;
  EXPECT_TRUE(soon([&] { return finished() == 2; }));
}

TEST_F(WorkerPoolTest, SparesStandInForWorkersThatWaitUntilThereAreNoMore) {
  make({.workers = 1, .spares = 2, .queue = 10});
  waits_in_nexar = true;
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(pool->submit(job())) << i;
    ASSERT_TRUE(soon([&] { return inside == i; })) << i;
  }
  EXPECT_EQ(pool->threads(), 3u);
  ASSERT_TRUE(soon([&] { return !pool->submit(job()); })) << "refused as soon as the last one waits";
  open = true;
  EXPECT_TRUE(soon([&] { return finished() >= 3; }));
  ASSERT_TRUE(soon([&] { return pool->submit(job()).has_value(); }));
}

// Every thread waits, and calls are queued: they may be what the threads wait for.
TEST_F(WorkerPoolTest, WhatIsQueuedWhenTheLastThreadWaitsIsHandedBackRefused) {
  std::atomic<bool> wait_now = false;
  WorkerPool stuck(
      {.workers = 1, .spares = 0, .queue = 10},
      [&](Served&) {
        ++inside;
        soon([&] { return wait_now.load(); });
        const WorkerPool::Wait wait;
        soon([&] { return open.load(); });
      },
      [] {});
  ASSERT_TRUE(stuck.submit(job()));
  ASSERT_TRUE(soon([&] { return inside == 1; }));
  ASSERT_TRUE(stuck.submit(job()));
  ASSERT_TRUE(stuck.submit(job()));
  wait_now = true;
  std::vector<WorkerPool::Job> back;
  ASSERT_TRUE(soon([&] {
    for (WorkerPool::Job& each : stuck.take_finished()) back.push_back(std::move(each));
    return back.size() == 2;
  }));
  EXPECT_TRUE(back[0]->refused && back[1]->refused);
  open = true;
}

TEST_F(WorkerPoolTest, StoppingWaitsForHandlersAndSaysSo) {
  make({.workers = 2, .spares = 0, .queue = 10});
  ASSERT_TRUE(pool->submit(job()));
  ASSERT_TRUE(soon([&] { return inside == 1; }));
  std::size_t said = 0;
  pool->stop(1ms, [&](std::size_t running) {
    said = running;
    open = true;
  });
  EXPECT_EQ(said, 1u);
  EXPECT_EQ(inside, 0);
  EXPECT_FALSE(pool->submit(job())) << "a stopped pool takes nothing";
}

}  // namespace
}  // namespace nexar::rpc
