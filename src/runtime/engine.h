// Who runs a node: whoever waits, drives.
//
// docs/threading.md tells it at length; engine.pml is the hand-over as a model that spin checks.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "base/time.h"
#include "cluster/core_share.h"
#include "io/clock.h"
#include "io/core_offers.h"
#include "io/loop.h"
#include "nexar/result.h"
#include "runtime/completion.h"

namespace nexar::runtime {

class Waiter;

struct EngineOptions {
  // How long a waiting thread turns the loop without blocking. A wake-up costs 35 us on small machines, a round trip 9, and a peer that
  // sends bulk needs 60 to 100 for what it seals at a time: who sleeps meanwhile has the peer wait, and sleep as well. Taken as zero where
  // the CoreShare says that nobody spins.
  base::Duration spin = std::chrono::microseconds(200);

  // When nobody has driven for this long the background thread does.
  base::Duration idle = std::chrono::milliseconds(1);

  // How often the background thread looks whether that is so while threads wait again and again: seldom enough to cost them nothing.
  base::Duration doze = std::chrono::milliseconds(4);

  // The background thread keeps away when another thread wanted to drive (after it was asked to leave, and after it was summoned and
  // somebody drove already) until nobody has driven for this long. Threads that wait again and again do not pay for its wake-ups, and do
  // not find it at work with what they have started. Zero: it never keeps away.
  base::Duration quiet = std::chrono::milliseconds(1);
};

// What has happened so far.
struct EngineCounters {
  std::uint64_t leads = 0;             // a waiting thread drove
  std::uint64_t follows = 0;           // a waiting thread slept while another drove
  std::uint64_t blocked_turns = 0;     // of waiting threads that drove: turns that were allowed to block
  std::uint64_t calls = 0;             // a sleeping follower was woken to drive
  std::uint64_t background_leads = 0;  // the background thread drove
  std::uint64_t idle_takeovers = 0;    // of those: because nobody had driven for a while, not because it was needed
  std::uint64_t summons = 0;           // the background thread was woken
  std::uint64_t vain_summons = 0;      // of those: somebody drove already when it came
};

// Runs a loop, on one thread at a time, so that nothing below needs locks.
//
// A thread that waits takes the baton if it is free and drives until its operation is done; then it calls one of the threads that sleep
// meanwhile, the followers. If there is none, a background thread takes the baton when nobody has for a while, or at once if it is needed.
//
// Owned by a node, which outlives every wait. Thread: any, where nothing else is said.
class Engine {
 public:
  // `loop` and `clock` outlive the engine; from here on only the engine turns the loop. Fails when there can be no more threads.
  static Result<std::unique_ptr<Engine>> start(io::Loop& loop, const io::Clock& clock = io::real_clock(), EngineOptions options = {});

  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Runs `work` on the engine, in the order of posting. A driver that is blocked is woken; where nobody drives, this makes no system call,
  // and `work` runs when the next thread waits or, if none does, when the background thread takes over. The queue has no limit of its own:
  // what is posted belongs to operations, and their owners bound those.
  void post(std::function<void()> work) { loop_.post(std::move(work)); }

  // The same for a thread that waits next: if the background thread drives, it is told to make room, so that only the first of many such
  // operations pays for its wake-up.
  void post_and_stay(std::function<void()> work);

  // Waits, driving if nobody does, until `completion` is done, or until `deadline`: then it returns false. A deadline that has passed still
  // gives the engine one turn. A thread that drives spins for `spins` times EngineOptions::spin before it blocks. Not from inside.
  bool wait(Completion& completion, std::optional<base::Time> deadline = std::nullopt, int spins = 1);

  // The index of the first that is done, or nothing at the deadline. No completion is named twice.
  std::optional<std::size_t> wait_any(std::span<Completion* const> completions, std::optional<base::Time> deadline = std::nullopt,
                                      int spins = 1);

  // Runs `work` on the engine and waits until it has run.
  void run(const std::function<void()>& work);

  // Counts the reasons for which the engine must be driven at once also while nobody waits: handlers, operations that nobody waits for.
  // Each true is followed by one false.
  void need_background(bool needed);

  // How threads wait from here on. Until it is said, those of a process that may use one core only do not spin, and none is crowded.
  void set_core_share(const cluster::CoreShare& share);

  // Whether this thread is just running callbacks of an engine, this one's or another's.
  static bool is_inside();

  // What every public call asks first. kInvalidArgument when the thread is inside, where waiting would be for ever; kUnsupported in a child
  // of fork, which has neither the background thread nor links of its own. Both name `call`.
  Result<void> check_outside(std::string_view call) const;

  // Ends the background thread; nobody waits then, nor afterwards. What has been posted and has not run stays with the loop, which the
  // caller may turn from here on. The destructor stops too. In a child of fork it only forgets. Not from inside.
  void stop();

  EngineCounters counters() const;

 private:
  enum class Driver : std::uint8_t { kNobody, kWaiter, kBackground };
  enum class Sleep : std::uint8_t { kAwake, kDoze, kDeep };

  // The thread that drives when nobody waits. On the heap, because a child of fork can neither join the thread nor destroy its word: the
  // word still counts a sleeper that the child does not have.
  struct Background {
    std::thread thread;
    std::condition_variable word;
    Sleep sleep = Sleep::kAwake;
    bool summoned = false;
    bool keeps_away = false;         // others want to drive: not before they have not for `quiet`
    bool quiet = false;              // not to be summoned until its doze is over
    std::uint64_t seen_changes = 0;  // changes_ when it last looked
  };

  Engine(io::Loop& loop, const io::Clock& clock, EngineOptions options);

  bool is_forked() const;
  base::Duration spin_time() const;

  // Nothing that is posted throws; what does ends the process here, with the baton in its hand.
  bool turn(base::Duration max_wait) noexcept;

  // Of threads that wait.
  void lead(const Waiter& me, std::unique_lock<std::mutex>& lock);
  std::uint64_t drive_for(const Waiter& me);
  void follow(Waiter& me, std::unique_lock<std::mutex>& lock);
  void take_from_background(const Waiter& me, std::unique_lock<std::mutex>& lock);
  void sleep(Waiter& me, std::unique_lock<std::mutex>& lock);
  void take_baton(Driver driver);
  void drop_baton();
  void call_next();

  // Of the background thread.
  bool is_driven() const { return driver_ != Driver::kNobody || candidate_ != nullptr; }
  void summon();
  void run_background();
  bool should_take_over() const;
  void drive_in_background(std::unique_lock<std::mutex>& lock);
  void sleep_in_background(std::unique_lock<std::mutex>& lock);
  base::Duration time_to_doze(bool calm) const;
  base::Duration time_to_keep_away() const;

  // Touched by whoever has the baton.
  io::Loop& loop_;

  const io::Clock& clock_;
  const EngineOptions options_;
  const std::uint32_t forks_at_start_;
  std::atomic<bool> crowded_ = false;
  std::atomic<bool> spins_;          // as CoreShare has it
  io::CoreOffers offers_;            // whoever has the baton
  std::atomic<bool> leave_ = false;  // the background thread shall drop the baton; written under the mutex

  // Held for a few instructions when the baton changes hands or a follower is woken; never during a turn.
  mutable std::mutex mutex_;
  Driver driver_ = Driver::kNobody;
  std::vector<Waiter*> followers_;  // asleep, the first to come first; as many as there are threads
  Waiter* candidate_ = nullptr;     // a follower that was called to take the baton and has not come yet
  std::uint64_t changes_ = 0;       // how often the baton was taken or dropped
  base::Time idle_since_;           // when it was dropped last
  std::atomic<int> needed_ = 0;     // rises under the mutex
  bool stopping_ = false;
  EngineCounters counters_;
  std::unique_ptr<Background> background_;
};

}  // namespace nexar::runtime
