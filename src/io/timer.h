// Timers: a call at a point in time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/time.h"

namespace nexar::io {

class Loop;
class TimerQueue;

// Calls back once when its time has come.
//
// Owned by its user, who destroys it before its loop; destroying it cancels it. A callback may set, cancel or destroy any timer, its own
// included. Thread: the one that runs the loop.
class Timer {
 public:
  Timer(Loop& loop, std::function<void()> callback);
  Timer(TimerQueue& queue, std::function<void()> callback);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Due at `time`, or at once when that has passed. A timer that is set already moves.
  void set(base::Time time);

  void cancel();

  // False from the moment its callback begins, unless that sets it again.
  bool is_set() const { return position_ != kNotQueued; }

 private:
  friend class TimerQueue;
  static constexpr std::size_t kNotQueued = SIZE_MAX;

  TimerQueue& queue_;
  std::function<void()> callback_;
  std::size_t position_ = kNotQueued;  // in the queue's heap
};

// The timers of one loop, earliest first; those due at the same time in the order in which they were set.
//
// A heap with four children to a node: setting, moving and cancelling cost O(log n), and nothing is allocated once it has been as long
// as it gets. Its length is bounded by its users: each timer is there at most once. Owned by a Loop.
class TimerQueue {
 public:
  TimerQueue() = default;
  ~TimerQueue();
  TimerQueue(const TimerQueue&) = delete;
  TimerQueue& operator=(const TimerQueue&) = delete;

  // When the first timer is due; Time::max() when none is set.
  base::Time next() const { return heap_.empty() ? base::Time::max() : heap_.front().due; }

  // Runs what is due at `now`, and returns whether anything was. A timer that a callback sets is left for the next call, also when it is
  // due already: a callback that sets itself again and again does not keep the loop here.
  bool run_due(base::Time now);

  std::size_t size() const { return heap_.size(); }

 private:
  friend class Timer;

  struct Entry {
    base::Time due;
    std::uint64_t order;
    Timer* timer;
  };

  static bool before(const Entry& a, const Entry& b) { return a.due != b.due ? a.due < b.due : a.order < b.order; }
  void set(Timer& timer, base::Time time);
  void remove(Timer& timer);
  void forget(const Timer& timer);
  void run(Timer& timer);
  void settle(std::size_t position, const Entry& entry);
  void put(std::size_t position, const Entry& entry);

  std::vector<Entry> heap_;
  std::uint64_t next_order_ = 0;
  base::Time running_at_ = base::Time::min();  // while run_due runs: its `now`
  const Timer* running_ = nullptr;             // whose callback runs; null again when that destroyed it
};

}  // namespace nexar::io
