// The loop under several threads. Run by ThreadSanitizer as well.
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "io/epoll_loop.h"

namespace nexar::io {
namespace {

using namespace std::chrono_literals;

constexpr int kThreads = 8;

class LoopThreads : public testing::Test {
 protected:
  std::unique_ptr<EpollLoop> loop = EpollLoop::open().value();
};

TEST_F(LoopThreads, WakeUpMakesABlockedTurnReturn) {
  std::atomic<bool> stop = false;
  std::thread sleeper([&] {
    while (!stop.load()) loop->turn(1h);
  });
  stop.store(true);
  loop->wake();
  sleeper.join();
}

// A lost wake-up would leave both sides waiting for ever: the test would not end.
TEST_F(LoopThreads, NoWakeUpIsLostInAPingPong) {
  constexpr int kRounds = 20'000;
  const std::unique_ptr<EpollLoop> other = EpollLoop::open().value();
  int ball = 0;  // plain: wake-ups and turns must order the accesses
  std::atomic<int> turn_of = 0;
  std::thread player([&] {
    for (int round = 0; round < kRounds; ++round) {
      while (turn_of.load(std::memory_order_relaxed) != 1) other->turn(1h);
      ++ball;
      turn_of.store(0, std::memory_order_relaxed);
      loop->wake();
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    turn_of.store(1, std::memory_order_relaxed);
    other->wake();
    while (turn_of.load(std::memory_order_relaxed) != 0) loop->turn(1h);
  }
  player.join();
  EXPECT_EQ(ball, kRounds);
}

TEST_F(LoopThreads, EverythingThatEightThreadsPostRunsOnceAndInTheirOrder) {
  constexpr int kPosts = 5000;
  std::vector<int> next(kThreads, 0);
  int ran = 0;
  std::vector<std::thread> threads;
  for (std::size_t id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      for (int i = 0; i < kPosts; ++i) {
        loop->post([&, id, i] {
          EXPECT_EQ(next[id]++, i);
          ++ran;
        });
      }
    });
  }
  while (ran < kThreads * kPosts) loop->turn(1h);
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(loop->turn(0ns));
}

TEST_F(LoopThreads, PostWakesALoopThatBlocksEveryTime) {
  constexpr int kPosts = 5000;
  std::atomic<int> ran = 0;
  std::thread sleeper([&] {
    while (ran.load() < kPosts) loop->turn(1h);
  });
  for (int i = 0; i < kPosts; ++i) {
    loop->post([&] { ran.fetch_add(1); });
    while (ran.load() <= i) std::this_thread::yield();  // so that the loop has gone, or is going, to sleep again
  }
  sleeper.join();
}

TEST_F(LoopThreads, IsHandedFromThreadToThread) {
  constexpr int kTurns = 2000;
  std::mutex baton;
  int runs = 0;
  Timer timer(*loop, [&] { timer.set(loop->now() + std::chrono::nanoseconds(++runs)); });
  timer.set(loop->now());
  std::vector<std::thread> threads;
  for (int id = 0; id < 4; ++id) {
    threads.emplace_back([&] {
      for (int i = 0; i < kTurns; ++i) {
        const std::lock_guard leader(baton);
        loop->turn(1ms);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(runs, kTurns);
}

}  // namespace
}  // namespace nexar::io
