// Hunts lost wake-ups. These engines do nothing because time passes, so that one lost wake-up is a hang and not a delay.
#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/running_engine.h"

namespace nexar::runtime {
namespace {

using namespace std::chrono_literals;

constexpr int kRounds = 2000;

// Keeps operations back and ends them in random order: when a few have gathered, or a little later. Thread: engine.
class RandomOrder {
 public:
  RandomOrder(io::Loop& loop, unsigned seed) : loop_(loop), random_(seed), timer_(loop, [this] { end_some(); }) {}

  void add(Completion& completion) {
    held_.push_back(&completion);
    if (random_() % 4 == 0) end_some();
    if (!held_.empty() && !timer_.is_set()) timer_.set(loop_.now() + std::chrono::microseconds(random_() % 100));
  }

 private:
  void end_some() {
    for (std::size_t count = 1 + random_() % 3; count > 0 && !held_.empty(); --count) {
      std::swap(held_[random_() % held_.size()], held_.back());
      Completion* completion = held_.back();
      held_.pop_back();
      completion->complete();
    }
    if (!held_.empty()) timer_.set(loop_.now() + std::chrono::microseconds(random_() % 100));
  }

  io::Loop& loop_;
  std::minstd_rand random_;
  io::Timer timer_;
  std::vector<Completion*> held_;
};

// Destroys the timers of what ran on the engine when no thread turns its loop any more.
struct Stress {
  explicit Stress(EngineOptions options = without_timeouts()) : engine(options), order(*engine.loop, 17) {}
  ~Stress() { engine->stop(); }

  void start_operation(Completion& completion) {
    engine->post([this, &completion] { order.add(completion); });
  }

  template <typename Body>
  static void on_threads(int count, Body body) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back([=] { body(static_cast<unsigned>(i)); });
    for (std::thread& thread : threads) thread.join();
  }

  RunningEngine engine;
  RandomOrder order;
};

class EngineStress : public testing::TestWithParam<int> {};

TEST_P(EngineStress, EveryWaitEndsWhateverTheOrder) {
  Stress stress;
  Stress::on_threads(GetParam(), [&](unsigned) {
    for (int i = 0; i < kRounds; ++i) {
      Completion completion;
      stress.start_operation(completion);
      ASSERT_TRUE(stress.engine->wait(completion));
    }
  });
  EXPECT_EQ(stress.engine->counters().background_leads, 0u);
}

TEST_P(EngineStress, EveryWaitEndsWithoutSpinning) {
  EngineOptions options = without_timeouts();
  options.spin = base::Duration::zero();
  Stress stress(options);
  Stress::on_threads(GetParam(), [&](unsigned) {
    for (int i = 0; i < kRounds; ++i) {
      Completion completion;
      stress.start_operation(completion);
      ASSERT_TRUE(stress.engine->wait(completion));
    }
  });
  EXPECT_EQ(stress.engine->counters().background_leads, 0u);
}

TEST_P(EngineStress, EveryWaitForAnyEndsAndLeavesNothingBehind) {
  Stress stress;
  Stress::on_threads(GetParam(), [&](unsigned) {
    for (int i = 0; i < kRounds / 4; ++i) {
      std::array<Completion, 4> completions;
      std::vector<Completion*> left;
      for (Completion& completion : completions) {
        stress.start_operation(completion);
        left.push_back(&completion);
      }
      while (!left.empty()) {
        const auto done = stress.engine->wait_any(left);
        ASSERT_TRUE(done.has_value());
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(*done));
      }
    }
  });
  EXPECT_EQ(stress.engine->counters().background_leads, 0u);
}

// Some operations are waited for, some only watched while the background thread is needed for them, and some waits give up in between.
TEST_P(EngineStress, WaitingAndNotWaitingByTurnsNeedsNoTimeout) {
  Stress stress;
  Stress::on_threads(GetParam(), [&](unsigned thread) {
    std::minstd_rand random(thread + 1);
    for (int i = 0; i < kRounds / 2; ++i) {
      Completion completion;
      const bool waits = random() % 2 == 0;
      if (!waits) stress.engine->need_background(true);
      stress.start_operation(completion);
      if (random() % 4 == 0) static_cast<void>(stress.engine->wait(completion, in(std::chrono::microseconds(random() % 200))));
      if (waits) {
        ASSERT_TRUE(stress.engine->wait(completion));
      }
      while (!completion.is_done()) std::this_thread::yield();
      if (!waits) stress.engine->need_background(false);
    }
  });
  EXPECT_EQ(stress.engine->counters().idle_takeovers, 0u);
}

INSTANTIATE_TEST_SUITE_P(Threads, EngineStress, testing::Values(1, 2, 8), testing::PrintToStringParamName());

TEST(EnginePosts, AHundredThousandFromFourThreadsRunOnceEachAndInOrder) {
  constexpr int kThreads = 4;
  constexpr int kPosts = 25000;
  const RunningEngine engine(without_timeouts());
  engine->need_background(true);
  std::array<int, kThreads> next = {};
  bool in_order = true;
  std::array<Completion, kThreads> last;
  Stress::on_threads(kThreads, [&](unsigned thread) {
    for (int i = 0; i < kPosts; ++i)
      engine->post([&, thread, i] {
        in_order = in_order && next[thread]++ == i;
        if (i == kPosts - 1) last[thread].complete();
      });
  });
  for (Completion& completion : last) EXPECT_TRUE(engine->wait(completion));
  EXPECT_TRUE(in_order);
  for (const int count : next) EXPECT_EQ(count, kPosts);
  engine->need_background(false);
}

}  // namespace
}  // namespace nexar::runtime
