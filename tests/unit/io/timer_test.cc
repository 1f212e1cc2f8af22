#include "io/timer.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "io/random.h"

namespace nexar::io {
namespace {

using std::chrono::nanoseconds;

base::Time at(std::int64_t ns) { return base::Time(nanoseconds(ns)); }

TEST(Timer, RunsInOrderOfTimeToTheNanosecond) {
  TimerQueue queue;
  std::string ran;
  Timer c(queue, [&] { ran += 'c'; }), a(queue, [&] { ran += 'a'; }), b(queue, [&] { ran += 'b'; });
  c.set(at(102));
  a.set(at(100));
  b.set(at(101));
  EXPECT_EQ(queue.next(), at(100));
  EXPECT_FALSE(queue.run_due(at(99)));
  EXPECT_TRUE(queue.run_due(at(101)));
  EXPECT_EQ(ran, "ab");
  EXPECT_TRUE(queue.run_due(at(102)));
  EXPECT_EQ(ran, "abc");
  EXPECT_EQ(queue.next(), base::Time::max());
}

TEST(Timer, RunsThoseOfOneTimeInTheOrderOfSetting) {
  TimerQueue queue;
  std::vector<int> ran;
  std::vector<std::unique_ptr<Timer>> timers;
  for (int i = 0; i < 100; ++i) timers.push_back(std::make_unique<Timer>(queue, [&ran, i] { ran.push_back(i); }));
  for (auto& timer : timers) timer->set(at(5));
  timers[10]->set(at(5));  // moves to the end
  queue.run_due(at(5));
  ASSERT_EQ(ran.size(), 100u);
  EXPECT_EQ(ran[10], 11);
  EXPECT_EQ(ran.back(), 10);
}

TEST(Timer, MovesWhenSetAgain) {
  TimerQueue queue;
  int runs = 0;
  Timer timer(queue, [&] { ++runs; });
  timer.set(at(10));
  timer.set(at(20));
  EXPECT_EQ(queue.size(), 1u);
  EXPECT_FALSE(queue.run_due(at(19)));
  timer.set(at(5));
  EXPECT_TRUE(queue.run_due(at(5)));
  EXPECT_EQ(runs, 1);
  EXPECT_FALSE(timer.is_set());
}

TEST(Timer, DoesNotRunOnceCancelledOrDestroyed) {
  TimerQueue queue;
  Timer cancelled(queue, [] { ADD_FAILURE(); });
  cancelled.set(at(1));
  cancelled.cancel();
  cancelled.cancel();
  {
    Timer destroyed(queue, [] { ADD_FAILURE(); });
    destroyed.set(at(1));
  }
  EXPECT_FALSE(queue.run_due(at(2)));
}

TEST(Timer, SetsItselfAgainInItsCallback) {
  TimerQueue queue;
  int runs = 0;
  std::unique_ptr<Timer> timer;
  timer = std::make_unique<Timer>(queue, [&] {
    EXPECT_FALSE(timer->is_set());
    timer->set(at(10 * ++runs));
  });
  timer->set(at(0));
  for (std::int64_t now = 0; now <= 30; now += 10) queue.run_due(at(now));
  EXPECT_EQ(runs, 4);
  EXPECT_TRUE(timer->is_set());
}

TEST(Timer, ThatSetsItselfInThePastDoesNotKeepTheOthersWaiting) {
  TimerQueue queue;
  int greedy_runs = 0;
  bool other_ran = false;
  std::unique_ptr<Timer> greedy;
  greedy = std::make_unique<Timer>(queue, [&] {
    ++greedy_runs;
    greedy->set(base::Time::min());
  });
  Timer other(queue, [&] { other_ran = true; });
  greedy->set(at(1));
  other.set(at(9));
  queue.run_due(at(10));
  EXPECT_EQ(greedy_runs, 1);
  EXPECT_TRUE(other_ran);
  EXPECT_TRUE(queue.run_due(at(10)));
  EXPECT_EQ(greedy_runs, 2);
}

TEST(Timer, MayBeDestroyedByItsOwnCallback) {
  TimerQueue queue;
  std::unique_ptr<Timer> timer;
  int after = 0;
  const std::string kept(100, 'x');  // what the callback owns is still there after the timer has gone
  timer = std::make_unique<Timer>(queue, [&, kept] {
    timer.reset();
    after = static_cast<int>(kept.size());
  });
  timer->set(at(1));
  queue.run_due(at(1));
  EXPECT_EQ(after, 100);
  EXPECT_EQ(timer, nullptr);
}

TEST(Timer, CallbackMayCancelAndDestroyOthersThatAreDue) {
  TimerQueue queue;
  Timer cancelled(queue, [] { ADD_FAILURE(); });
  auto destroyed = std::make_unique<Timer>(queue, [] { ADD_FAILURE(); });
  bool last_ran = false;
  Timer last(queue, [&] { last_ran = true; });
  Timer first(queue, [&] {
    cancelled.cancel();
    destroyed.reset();
  });
  first.set(at(1));
  cancelled.set(at(2));
  destroyed->set(at(3));
  last.set(at(4));
  queue.run_due(at(10));
  EXPECT_TRUE(last_ran);
}

TEST(Timer, CallbackMayPutAnotherThatIsDueOff) {
  TimerQueue queue;
  Timer later(queue, [] { ADD_FAILURE(); });
  Timer first(queue, [&] { later.set(at(100)); });
  first.set(at(1));
  later.set(at(2));
  queue.run_due(at(10));
  EXPECT_TRUE(later.is_set());
}

TEST(Timer, HundredThousandKeepTheirOrderUnderMovesAndCancellations) {
  constexpr std::size_t kCount = 100'000;
  TimerQueue queue;
  SeededRandom random(42);
  base::Time last = at(0);
  base::Time now = at(0);
  std::size_t runs = 0;
  std::vector<base::Time> due(kCount, base::Time::max());
  std::vector<std::unique_ptr<Timer>> timers;
  for (std::size_t i = 0; i < kCount; ++i) {
    timers.push_back(std::make_unique<Timer>(queue, [&, i] {
      EXPECT_GE(due[i], last);
      EXPECT_LE(due[i], now);
      last = due[i];
      ++runs;
    }));
  }
  auto set = [&](std::size_t i) { timers[i]->set(due[i] = at(random.number<std::uint32_t>() >> 4)); };
  for (std::size_t i = 0; i < kCount; ++i) set(i);
  for (std::size_t i = 0; i < kCount; i += 3) set(i);
  std::size_t cancelled = 0;
  for (std::size_t i = 0; i < kCount; i += 7, ++cancelled) timers[i]->cancel();
  EXPECT_EQ(queue.size(), kCount - cancelled);
  for (std::int64_t ns = 0; ns < std::int64_t{1} << 28; ns += std::int64_t{1} << 20) queue.run_due(now = at(ns));
  queue.run_due(now = at(std::int64_t{1} << 28));
  EXPECT_EQ(runs, kCount - cancelled);
}

TEST(TimerDeath, MustNotOutliveItsQueue) {
  EXPECT_DEATH(
      {
        auto queue = std::make_unique<TimerQueue>();
        Timer timer(*queue, [] {});
        timer.set(at(1));
        queue.reset();
      },
      "destroyed before their loop");
}

}  // namespace
}  // namespace nexar::io
