#include "io/epoll_loop.h"

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "io/stream_socket.h"

namespace nexar::io {
namespace {

using namespace std::chrono_literals;
using base::Duration;

struct Pipe {
  Pipe() {
    std::array<int, 2> fds{};
    EXPECT_EQ(pipe2(fds.data(), O_CLOEXEC | O_NONBLOCK), 0);
    out.reset(fds[0]);
    in.reset(fds[1]);
  }
  void fill() const { EXPECT_EQ(::write(in.get(), "x", 1), 1); }

  FileDescriptor out, in;
};

class CallingWatcher : public Watcher {
 public:
  explicit CallingWatcher(std::function<void(Readiness)> call) : call_(std::move(call)) {}
  void on_ready(Readiness ready) override { call_(ready); }

 private:
  std::function<void(Readiness)> call_;
};

class CallingPoller : public Poller {
 public:
  explicit CallingPoller(std::function<bool()> call) : call_(std::move(call)) {}
  bool poll() override { return call_(); }

 private:
  std::function<bool()> call_;
};

// A clock that stands still until it is moved, also backwards.
class ManualClock final : public Clock {
 public:
  base::Time now() const override {
    ++readings;
    return time;
  }
  std::chrono::sys_seconds wall() const override { return {}; }

  base::Time time{1h};
  mutable int readings = 0;
};

class EpollLoopTest : public testing::Test {
 protected:
  std::unique_ptr<EpollLoop> loop = EpollLoop::open().value();
};

TEST_F(EpollLoopTest, DoesNothingWhenThereIsNothing) {
  EXPECT_FALSE(loop->turn(0ns));
  EXPECT_FALSE(loop->turn(1us));
}

TEST_F(EpollLoopTest, CallsTheWatcherOfAReadyDescriptorUntilItIsEmpty) {
  const Pipe pipe;
  int calls = 0;
  CallingWatcher watcher([&](Readiness ready) {
    EXPECT_TRUE(ready.read);
    EXPECT_FALSE(ready.write || ready.hang_up);
    if (++calls < 2) return;  // level-triggered: what is not read is reported again
    char c;
    EXPECT_EQ(::read(pipe.out.get(), &c, 1), 1);
  });
  ASSERT_TRUE(loop->watch(pipe.out.get(), {.read = true}, watcher));
  EXPECT_FALSE(loop->turn(1us));
  pipe.fill();
  EXPECT_TRUE(loop->turn(1h));
  EXPECT_TRUE(loop->turn(1h));
  EXPECT_FALSE(loop->turn(1us));
  EXPECT_EQ(calls, 2);
  loop->unwatch(pipe.out.get());
}

TEST_F(EpollLoopTest, ReportsWhatIsWantedAndNothingElse) {
  auto [here, there] = StreamSocket::pair().value();
  std::vector<Readiness> reports;
  CallingWatcher watcher([&](Readiness ready) { reports.push_back(ready); });
  ASSERT_TRUE(there.write(std::as_bytes(std::span("x", 1))));
  ASSERT_TRUE(loop->watch(here.fd(), {}, watcher));
  EXPECT_FALSE(loop->turn(1us));
  loop->change(here.fd(), {.read = false, .write = true});
  EXPECT_TRUE(loop->turn(1h));
  EXPECT_TRUE(reports.at(0).write && !reports.at(0).read);
  loop->change(here.fd(), {.read = true, .write = true});
  EXPECT_TRUE(loop->turn(1h));
  EXPECT_TRUE(reports.at(1).write && reports.at(1).read);
  loop->unwatch(here.fd());
}

TEST_F(EpollLoopTest, ReportsAHangUpAlsoToThoseWhoWantNothing) {
  auto [here, there] = StreamSocket::pair().value();
  std::vector<Readiness> reports;
  CallingWatcher watcher([&](Readiness ready) { reports.push_back(ready); });
  ASSERT_TRUE(loop->watch(here.fd(), {}, watcher));
  { const StreamSocket gone = std::move(there); }
  EXPECT_TRUE(loop->turn(1h));
  EXPECT_TRUE(reports.at(0).hang_up && !reports.at(0).read && !reports.at(0).write);
  loop->change(here.fd(), {.read = true});
  EXPECT_TRUE(loop->turn(1h));
  EXPECT_TRUE(reports.at(1).hang_up && reports.at(1).read && !reports.at(1).write);
  loop->unwatch(here.fd());
}

TEST_F(EpollLoopTest, NeverCallsAWatcherThatACallbackOfTheSameBatchRemoved) {
  const Pipe a, b;
  int calls = 0;
  auto remove_both = [&](Readiness) {
    ++calls;
    loop->unwatch(a.out.get());
    loop->unwatch(b.out.get());
  };
  CallingWatcher first(remove_both), second(remove_both);
  ASSERT_TRUE(loop->watch(a.out.get(), {.read = true}, first));
  ASSERT_TRUE(loop->watch(b.out.get(), {.read = true}, second));
  a.fill();
  b.fill();
  EXPECT_TRUE(loop->turn(1h));
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(loop->turn(1us));
}

TEST_F(EpollLoopTest, DoesNotTakeANewWatchOfTheSameNumberForTheOldOne) {
  auto a = std::make_unique<Pipe>(), b = std::make_unique<Pipe>();
  int old_calls = 0, new_calls = 0;
  std::unique_ptr<Pipe> fresh;
  CallingWatcher new_watcher([&](Readiness) { ++new_calls; });
  auto replace_other = [&](std::unique_ptr<Pipe>& other) {
    ++old_calls;
    const int number = other->out.get();
    loop->unwatch(number);
    other.reset();
    fresh = std::make_unique<Pipe>();  // empty, and with the numbers of the one that was just closed
    ASSERT_EQ(fresh->out.get(), number);
    ASSERT_TRUE(loop->watch(number, {.read = true}, new_watcher));
  };
  CallingWatcher first([&](Readiness) { replace_other(b); }), second([&](Readiness) { replace_other(a); });
  ASSERT_TRUE(loop->watch(a->out.get(), {.read = true}, first));
  ASSERT_TRUE(loop->watch(b->out.get(), {.read = true}, second));
  a->fill();
  b->fill();
  EXPECT_TRUE(loop->turn(1h));
  EXPECT_EQ(old_calls, 1);
  EXPECT_EQ(new_calls, 0);
}

TEST_F(EpollLoopTest, ForgetsReadinessWhenTheInterestChanges) {
  const Pipe a, b;
  int calls = 0;
  auto silence_both = [&](Readiness) {
    ++calls;
    loop->change(a.out.get(), {});
    loop->change(b.out.get(), {});
  };
  CallingWatcher first(silence_both), second(silence_both);
  ASSERT_TRUE(loop->watch(a.out.get(), {.read = true}, first));
  ASSERT_TRUE(loop->watch(b.out.get(), {.read = true}, second));
  a.fill();
  b.fill();
  EXPECT_TRUE(loop->turn(1h));
  EXPECT_EQ(calls, 1);
}

TEST_F(EpollLoopTest, ServesMoreReadyDescriptorsThanOneCallBrings) {
  constexpr std::size_t kCount = EpollLoop::kEventsPerWait * 3 + 1;
  std::vector<Pipe> pipes(kCount);
  std::vector<std::unique_ptr<CallingWatcher>> watchers;
  std::size_t served = 0;
  for (const Pipe& pipe : pipes) {
    watchers.push_back(std::make_unique<CallingWatcher>([&](Readiness) {
      ++served;
      loop->unwatch(pipe.out.get());
    }));
    pipe.fill();
    ASSERT_TRUE(loop->watch(pipe.out.get(), {.read = true}, *watchers.back()));
  }
  for (int turns = 0; turns < 4; ++turns) EXPECT_TRUE(loop->turn(1h));
  EXPECT_EQ(served, kCount);
}

TEST_F(EpollLoopTest, RefusesWhatTheKernelCannotWatch) {
  CallingWatcher watcher([](Readiness) {});
  const FileDescriptor file(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const Result<void> result = loop->watch(file.get(), {.read = true}, watcher);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kIo);
}

TEST_F(EpollLoopTest, ServesDescriptorsWhileItSpins) {
  const Pipe pipe;
  int calls = 0;
  CallingWatcher watcher([&](Readiness) { ++calls; });
  CallingPoller busy([] { return true; });
  ASSERT_TRUE(loop->watch(pipe.out.get(), {.read = true}, watcher));
  loop->add_poller(busy);
  pipe.fill();
  for (int i = 0; i < EpollLoop::kTurnsPerEpoll * 10; ++i) loop->turn(0ns);
  EXPECT_EQ(calls, 10);
  for (int i = 0; i < EpollLoop::kTurnsPerEpoll; ++i) loop->turn(1h);  // a busy poller keeps it from waiting, not from serving
  EXPECT_EQ(calls, 11);
  loop->remove_poller(busy);
  loop->unwatch(pipe.out.get());
}

TEST_F(EpollLoopTest, PollersRunEveryTurnAndMayComeAndGoMeanwhile) {
  std::string ran;
  CallingPoller late([&] { return ran += 'l', false; });
  CallingPoller victim([&] { return ran += 'v', false; });
  bool first_turn = true;
  CallingPoller first([&] {
    ran += 'f';
    if (!std::exchange(first_turn, false)) return false;
    loop->remove_poller(victim);
    loop->add_poller(late);
    return true;
  });
  loop->add_poller(first);
  loop->add_poller(victim);
  EXPECT_TRUE(loop->turn(0ns));
  EXPECT_EQ(ran, "f");
  EXPECT_FALSE(loop->turn(0ns));
  EXPECT_EQ(ran, "ffl");
  loop->add_poller(victim);
  loop->turn(0ns);
  EXPECT_EQ(ran, "fflflv");
}

class TurnTakingPoller : public CallingPoller {
 public:
  using CallingPoller::CallingPoller;
  bool takes_turns() const override { return true; }
};

TEST_F(EpollLoopTest, OfPollersThatTakeTurnsOneThatHasWorkRunsInEach) {
  std::string ran;
  bool b_has_work = true;
  CallingPoller urgent([&] { return ran += 'u', false; });
  TurnTakingPoller a([&] { return ran += 'a', true; });
  TurnTakingPoller b([&] { return ran += 'b', b_has_work; });
  TurnTakingPoller c([&] { return ran += 'c', true; });
  for (Poller* poller : std::initializer_list<Poller*>{&a, &b, &urgent, &c}) loop->add_poller(*poller);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(loop->turn(0ns));
  EXPECT_EQ(ran, "uaubucua");
  b_has_work = false;
  loop->remove_poller(a);
  for (int i = 0; i < 2; ++i) loop->turn(0ns);  // places close up meanwhile
  ran.clear();
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(loop->turn(0ns));
  EXPECT_EQ(ran, "ubcubc");
}

TEST_F(EpollLoopTest, IsHurriedForAWhile) {
  EXPECT_FALSE(loop->is_hurried());
  loop->refresh();
  loop->hurry();
  EXPECT_TRUE(loop->is_hurried());
  std::this_thread::sleep_for(2 * EpollLoop::kHurry);
  loop->refresh();
  EXPECT_FALSE(loop->is_hurried());
}

TEST_F(EpollLoopTest, WaitsUntilTheNextTimerAndNoLonger) {
  bool ran = false;
  Timer timer(*loop, [&] { ran = true; });
  const base::Time due = loop->refresh() + 300us;
  timer.set(due);
  while (!ran) loop->turn(1h);
  EXPECT_GE(loop->now(), due);
  EXPECT_LT(loop->now() - due, 10s);  // generous: the machine may be busy; that it does not round to hours is the point
}

TEST_F(EpollLoopTest, SetsTheTimerSlackOfAThreadThatWaits) {
  loop->turn(1us);
  EXPECT_EQ(prctl(PR_GET_TIMERSLACK, 0ul, 0ul, 0ul, 0ul), 1);
}

TEST_F(EpollLoopTest, RoundsWaitsUpWhereTheKernelKnowsOnlyMilliseconds) {
  loop = EpollLoop::open(real_clock(), {.precise_wait = false}).value();
  bool ran = false;
  Timer timer(*loop, [&] { ran = true; });
  const base::Time start = loop->refresh();
  timer.set(start + 1100us);
  EXPECT_TRUE(loop->turn(1h));  // one turn: had it rounded down, the timer would not be due
  EXPECT_TRUE(ran);
}

TEST(EpollLoop, ReadsTheClockOncePerTurnAndNeverGoesBackwards) {
  ManualClock clock;
  const std::unique_ptr<EpollLoop> loop = EpollLoop::open(clock).value();
  const int readings = clock.readings;
  loop->turn(0ns);
  EXPECT_EQ(clock.readings, readings + 1);
  clock.time += 5s;
  EXPECT_EQ(loop->now(), base::Time(1h));
  loop->turn(0ns);
  EXPECT_EQ(loop->now(), base::Time(1h + 5s));
  clock.time -= 2s;
  loop->turn(0ns);
  EXPECT_EQ(loop->now(), base::Time(1h + 5s));
  clock.time += 10s;
  EXPECT_EQ(loop->refresh(), base::Time(1h + 13s));
}

TEST(EpollLoop, RunsATimerOnTheTurnThatItIsDue) {
  ManualClock clock;
  const std::unique_ptr<EpollLoop> loop = EpollLoop::open(clock).value();
  int runs = 0;
  Timer timer(*loop, [&] { timer.set(loop->now() + Duration(++runs)); });
  timer.set(clock.time + 1ns);
  EXPECT_FALSE(loop->turn(0ns));
  clock.time += 1ns;
  EXPECT_TRUE(loop->turn(0ns));
  EXPECT_EQ(runs, 1);
  EXPECT_FALSE(loop->turn(0ns));
}

TEST_F(EpollLoopTest, TakesWaitsWithoutEnd) {
  Timer never(*loop, [] {});
  never.set(base::Time::max());
  loop->post([] {});
  EXPECT_TRUE(loop->turn(Duration::max()));
  loop->wake();
  EXPECT_TRUE(loop->turn(Duration::max()));
}

TEST_F(EpollLoopTest, RunsWhatWasPostedInOrderAndWhatThatPostsOnTheNextTurn) {
  std::string ran;
  loop->post([&] {
    ran += 'a';
    loop->post([&] { ran += 'c'; });
  });
  loop->post([&] { ran += 'b'; });
  EXPECT_TRUE(loop->turn(1h));
  EXPECT_EQ(ran, "ab");
  EXPECT_TRUE(loop->turn(1h));
  EXPECT_EQ(ran, "abc");
  EXPECT_FALSE(loop->turn(0ns));
}

TEST_F(EpollLoopTest, DestroysWhatDidNotRun) {
  auto owned = std::make_shared<int>(1);
  loop->post([owned] { ADD_FAILURE(); });
  EXPECT_EQ(owned.use_count(), 2);
  loop.reset();
  EXPECT_EQ(owned.use_count(), 1);
}

TEST_F(EpollLoopTest, RemembersAWakeUpThatCameBeforeTheWait) {
  loop->turn(0ns);
  loop->wake();
  EXPECT_FALSE(loop->turn(0ns));  // does not wait, so does not use it up
  EXPECT_TRUE(loop->turn(1h));
  EXPECT_FALSE(loop->turn(1us));
}

// Work that comes without a descriptor: the poller is told when the loop is about to block, and can keep it from that.
TEST_F(EpollLoopTest, AsksItsPollersBeforeItBlocks) {
  struct Sleeper : Poller {
    bool poll() override { return false; }
    bool fall_asleep() override {
      ++asleep;
      return may_sleep;
    }
    void wake_up() override { ++awake; }
    bool may_sleep = false;
    int asleep = 0;
    int awake = 0;
  } sleeper;
  loop->add_poller(sleeper);
  loop->turn(0ns);
  EXPECT_EQ(sleeper.asleep, 0) << "a turn that does not block asks nobody";
  loop->turn(1h);
  EXPECT_EQ(sleeper.asleep, 1);
  EXPECT_EQ(sleeper.awake, 1) << "it had something to do, so nobody slept";
  sleeper.may_sleep = true;
  loop->turn(1ms);
  EXPECT_EQ(sleeper.asleep, 2);
  EXPECT_EQ(sleeper.awake, 2);
  loop->remove_poller(sleeper);
}

using EpollLoopDeath = EpollLoopTest;

TEST_F(EpollLoopDeath, DoesNotRunInsideItself) {
  loop->post([&] { loop->turn(0ns); });
  EXPECT_DEATH(loop->turn(0ns), "does not run the loop");
}

TEST_F(EpollLoopDeath, NoticesADescriptorThatWasClosedBeforeItWasUnwatched) {
  auto pipe = std::make_unique<Pipe>();
  CallingWatcher watcher([](Readiness) {});
  ASSERT_TRUE(loop->watch(pipe->out.get(), {.read = true}, watcher));
  const int number = pipe->out.get();
  pipe.reset();
  EXPECT_DEATH(loop->unwatch(number), "before it is closed");
}

}  // namespace
}  // namespace nexar::io
