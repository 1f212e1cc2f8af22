#include "runtime/engine.h"

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/running_engine.h"

namespace nexar::runtime {
namespace {

using namespace std::chrono_literals;

TEST(Engine, AThreadThatWaitsRunsWhatItPostedItself) {
  const RunningEngine engine(without_timeouts());
  std::thread::id ran_on;
  Completion done;
  engine->post([&] {
    ran_on = std::this_thread::get_id();
    done.complete();
  });
  EXPECT_TRUE(engine->wait(done));
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  const EngineCounters counters = engine->counters();
  EXPECT_EQ(counters.leads, 1u);
  EXPECT_EQ(counters.summons, 0u);
}

TEST(Engine, WaitingForWhatIsDoneDoesNotTouchTheBaton) {
  const RunningEngine engine(without_timeouts());
  Completion done;
  engine->run([&] { done.complete(); });
  const std::uint64_t leads = engine->counters().leads;
  EXPECT_TRUE(engine->wait(done));
  EXPECT_EQ(engine->counters().leads, leads);
}

TEST(Engine, ATimerCompletesWhatALeaderWaitsFor) {
  const RunningEngine engine(without_timeouts());
  Completion done;
  io::Timer timer(*engine.loop, [&] { done.complete(); });
  engine->run([&] { timer.set(engine.loop->now() + 2ms); });
  EXPECT_TRUE(engine->wait(done));
}

TEST(Engine, WithoutSpinningALeaderBlocksAtOnce) {
  EngineOptions options = without_timeouts();
  options.spin = base::Duration::zero();
  const RunningEngine engine(options);
  Completion never;
  EXPECT_FALSE(engine->wait(never, in(1ms)));
  EXPECT_GE(engine->counters().blocked_turns, 1u);
}

TEST(Engine, ALeaderSpinsForAsLongAsTheWaitIsWorth) {
  EngineOptions options = without_timeouts();
  options.spin = 1ms;
  for (const int spins : {1, 60'000}) {
    const RunningEngine engine(options);
    engine->set_core_share({});
    Completion never;
    EXPECT_FALSE(engine->wait(never, in(20ms), spins));
    EXPECT_EQ(engine->counters().blocked_turns == 0, spins > 1) << spins;
  }
}

TEST(Engine, OnACoreThatAnotherRankNeedsALeaderBlocksAtOnceAndElsewhereSpins) {
  EngineOptions options = without_timeouts();
  options.spin = 1h;
  const RunningEngine engine(options);
  Completion never;
  engine->set_core_share({.crowded = true, .spins = false});
  EXPECT_FALSE(engine->wait(never, in(1ms)));
  const std::uint64_t blocked = engine->counters().blocked_turns;
  EXPECT_GE(blocked, 1u);
  engine->set_core_share({.crowded = false, .spins = true});
  EXPECT_FALSE(engine->wait(never, in(1ms)));
  EXPECT_EQ(engine->counters().blocked_turns, blocked);
}

TEST(Engine, AWaitEndsAtItsDeadline) {
  const RunningEngine engine(without_timeouts());
  Completion never;
  const base::Time deadline = in(3ms);
  EXPECT_FALSE(engine->wait(never, deadline));
  EXPECT_GE(io::real_clock().now(), deadline);
  EXPECT_FALSE(never.is_done());
}

TEST(Engine, ADeadlineThatHasPassedStillGivesOneTurn) {
  const RunningEngine engine(without_timeouts());
  Completion done;
  engine.post_completion(done);
  EXPECT_TRUE(engine->wait(done, in(-1s)));
}

TEST(Engine, AFollowerLeavesAtItsDeadlineAndTheLeaderGoesOn) {
  const RunningEngine engine(without_timeouts());
  Completion leaders;
  std::thread leader([&] { EXPECT_TRUE(engine->wait(leaders)); });
  while (engine->counters().leads == 0) std::this_thread::yield();

  Completion never;
  EXPECT_FALSE(engine->wait(never, in(2ms)));
  EXPECT_EQ(engine->counters().follows, 1u);
  engine.post_completion(leaders);
  leader.join();
}

TEST(Engine, ALeaderThatLeavesCallsAFollower) {
  const RunningEngine engine(without_timeouts());
  Completion first;
  Completion second;
  std::thread leader([&] { EXPECT_TRUE(engine->wait(first)); });
  while (engine->counters().leads == 0) std::this_thread::yield();
  std::thread follower([&] { EXPECT_TRUE(engine->wait(second)); });
  while (engine->counters().follows == 0) std::this_thread::yield();

  engine.post_completion(first);
  leader.join();
  engine.post_completion(second);  // nobody else is there to run this
  follower.join();
  const EngineCounters counters = engine->counters();
  EXPECT_EQ(counters.calls, 1u);
  EXPECT_EQ(counters.leads, 2u);
  EXPECT_EQ(counters.background_leads, 0u);
}

TEST(Engine, ALeaderWakesTheFollowerWhoseOperationIsDoneAndNoOther) {
  const RunningEngine engine(without_timeouts());
  Completion leaders;
  std::array<Completion, 2> followers;
  std::atomic<int> woken = 0;
  std::thread leader([&] { engine->wait(leaders); });
  while (engine->counters().leads == 0) std::this_thread::yield();
  std::vector<std::thread> threads;
  for (Completion& completion : followers)
    threads.emplace_back([&] {
      engine->wait(completion);
      ++woken;
    });
  while (engine->counters().follows < 2) std::this_thread::yield();

  engine.post_completion(followers[1]);
  threads[1].join();
  EXPECT_EQ(woken, 1);
  EXPECT_EQ(engine->counters().leads, 1u) << "the leader still leads";
  EXPECT_EQ(engine->counters().calls, 0u);
  engine.post_completion(followers[0]);
  engine.post_completion(leaders);
  threads[0].join();
  leader.join();
}

TEST(Engine, WaitAnyReturnsTheFirstThatIsDone) {
  const RunningEngine engine(without_timeouts());
  std::array<Completion, 3> completions;
  const std::array<Completion*, 3> all = {&completions[0], &completions[1], &completions[2]};
  engine.post_completion(completions[2]);
  EXPECT_EQ(engine->wait_any(all), 2u);
  engine.post_completion(completions[0]);
  EXPECT_EQ(engine->wait_any(std::span(all).first(2)), 0u);
  EXPECT_EQ(engine->wait_any(std::span(all).subspan(1, 1), in(1ms)), std::nullopt);
}

TEST(Engine, AFollowerOfSeveralIsWokenByOneAndLeavesTheOthersPending) {
  const RunningEngine engine(without_timeouts());
  Completion leaders;
  std::thread leader([&] { engine->wait(leaders); });
  while (engine->counters().leads == 0) std::this_thread::yield();

  std::array<Completion, 3> completions;
  const std::array<Completion*, 3> all = {&completions[0], &completions[1], &completions[2]};
  std::thread follower([&] { EXPECT_EQ(engine->wait_any(all), 1u); });
  while (engine->counters().follows == 0) std::this_thread::yield();
  engine.post_completion(completions[1]);
  follower.join();

  engine.post_completion(completions[0]);
  engine.post_completion(completions[2]);
  engine.post_completion(leaders);
  leader.join();
  EXPECT_TRUE(completions[0].is_done());
}

TEST(Engine, CallsFromInsideACallbackAreRefusedByName) {
  const RunningEngine engine;
  EXPECT_FALSE(Engine::is_inside());
  EXPECT_TRUE(engine->check_outside("send"));
  Result<void> answer;
  bool inside = false;
  engine->run([&] {
    inside = Engine::is_inside();
    answer = engine->check_outside("send");
  });
  EXPECT_TRUE(inside);
  EXPECT_FALSE(Engine::is_inside());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(answer.error().sentence().find("send was called from inside a callback of nexar"), std::string::npos);
}

TEST(Engine, ACallbackOfOneNodeMayNotCallAnother) {
  const RunningEngine one;
  const RunningEngine other;
  Result<void> answer;
  one->run([&] { answer = other->check_outside("call"); });
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::kInvalidArgument);
}

TEST(EngineDeathTest, ToWaitFromInsideIsADefectOfNexar) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        const RunningEngine engine;
        Completion never;
        engine->run([&] { engine->wait(never); });
      },
      "calls from inside are refused");
}

}  // namespace
}  // namespace nexar::runtime
