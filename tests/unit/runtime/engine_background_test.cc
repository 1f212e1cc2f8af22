// What the background thread does, and when.
#include <thread>

#include <gtest/gtest.h>

#include "runtime/running_engine.h"

namespace nexar::runtime {
namespace {

using namespace std::chrono_literals;

// Without waiting, so without driving.
void until_done(const Completion& completion) {
  while (!completion.is_done()) std::this_thread::yield();
}

// It is needed, and has shown that it drives.
void have_it_drive(const RunningEngine& engine) {
  engine->need_background(true);
  Completion done;
  engine.post_completion(done);
  until_done(done);
}

TEST(EngineBackground, RunsWhatNobodyWaitsForWhenNobodyHasDrivenForAWhile) {
  const RunningEngine engine;
  Completion done;
  engine.post_completion(done);
  until_done(done);
  EXPECT_TRUE(engine->wait(done)) << "a later wait finds it done";
  EXPECT_EQ(engine->counters().leads, 0u);
  EXPECT_EQ(engine->counters().idle_takeovers, 1u);
}

TEST(EngineBackground, TakesOverAgainAfterALongWait) {
  const RunningEngine engine({.doze = 1ms});
  Completion never;
  EXPECT_FALSE(engine->wait(never, in(20ms)));  // long enough for it to fall asleep deeply
  Completion done;
  engine.post_completion(done);
  until_done(done);
  EXPECT_GE(engine->counters().idle_takeovers, 1u);
}

TEST(EngineBackground, DrivesAtOnceWhenItIsNeeded) {
  const RunningEngine engine(without_timeouts());
  Completion done;
  engine->need_background(true);
  engine.post_completion(done);
  until_done(done);
  engine->need_background(false);
  EXPECT_EQ(engine->counters().idle_takeovers, 0u);
}

TEST(EngineBackground, DrivesAtOnceWhenALeaderLeavesAndItIsNeeded) {
  const RunningEngine engine(without_timeouts());
  engine->need_background(true);
  for (int i = 0; i < 100; ++i) {
    engine->run([] {});
    Completion done;
    engine.post_completion(done);
    until_done(done);
  }
  engine->need_background(false);
  EXPECT_EQ(engine->counters().idle_takeovers, 0u);
}

TEST(EngineBackground, GivesTheBatonToAThreadThatWaits) {
  const RunningEngine engine(without_timeouts());
  have_it_drive(engine);  // it is blocked, or about to be

  Completion never;
  for (int i = 0; i < 1000 && engine->counters().leads == 0; ++i) EXPECT_FALSE(engine->wait(never, in(5ms)));
  EXPECT_GE(engine->counters().leads, 1u);
  engine->need_background(false);
}

TEST(EngineBackground, AVainSummonsIsNotRepeatedWhileItKeepsAway) {
  EngineOptions options = without_timeouts();
  options.quiet = 1h;
  const RunningEngine engine(options);
  Completion leaders;
  std::thread leader([&] { engine->wait(leaders); });
  while (engine->counters().leads == 0) std::this_thread::yield();
  engine->need_background(true);
  engine.post_completion(leaders);
  leader.join();

  // It was summoned when that thread left. If it came in time it drives; then it is asked to leave. Either way it keeps away from then on.
  engine->run([] {});
  const std::uint64_t summons = engine->counters().summons;
  EXPECT_LE(summons, 2u);
  for (int i = 0; i < 1000; ++i) engine->run([] {});
  EXPECT_LE(engine->counters().summons, summons + 1);
  engine->need_background(false);
}

TEST(EngineBackground, KeepsAwayAsLongAsOthersDriveAgainAndAgain) {
  EngineOptions options = without_timeouts();
  options.quiet = 200ms;
  const RunningEngine engine(options);
  have_it_drive(engine);
  engine->run([] {});
  const std::uint64_t leads = engine->counters().background_leads;
  for (const base::Time end = in(500ms); io::real_clock().now() < end;) engine->run([] {});
  EXPECT_LE(engine->counters().background_leads, leads + 1) << "a thread that was not let run for long may look idle once";

  Completion last;  // nobody drives any more
  engine.post_completion(last);
  until_done(last);
  EXPECT_GE(engine->counters().background_leads, leads + 1);
  engine->need_background(false);
}

TEST(EngineBackground, MakesRoomForAThreadThatPostsToWait) {
  EngineOptions options = without_timeouts();
  options.quiet = 1h;
  const RunningEngine engine(options);
  have_it_drive(engine);
  for (int i = 0; i < 1000; ++i) engine->run([] {});
  EXPECT_GE(engine->counters().leads, 990u) << "it ran the first, and what came while it was leaving";
  EXPECT_EQ(engine->counters().background_leads, 1u);
  EXPECT_LE(engine->counters().summons, 1u) << "only by being needed at first";
  engine->need_background(false);
}

TEST(EngineBackground, IsNotWokenWhileOneThreadWaits) {
  const RunningEngine engine({.doze = 1ms});
  Completion never;
  EXPECT_FALSE(engine->wait(never, in(20ms)));
  const EngineCounters counters = engine->counters();
  EXPECT_LE(counters.summons, 1u) << "when that thread left";
  EXPECT_EQ(counters.vain_summons, 0u);
}

TEST(EngineBackground, StopsWhileItIsIdleDozesOrDrives) {
  { const RunningEngine idle; }
  { const RunningEngine dozes(without_timeouts()); }
  const RunningEngine drives(without_timeouts());
  drives->need_background(true);
  Completion done;
  drives.post_completion(done);
  until_done(done);
  drives->stop();
  drives->stop();  // nothing more
}

TEST(EngineBackground, WhatWasPostedAndDidNotRunStaysWithTheLoop) {
  const RunningEngine engine(without_timeouts());
  engine->stop();
  bool ran = false;
  engine->post([&] { ran = true; });
  EXPECT_FALSE(ran);
  engine.loop->turn(base::Duration::zero());
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace nexar::runtime
