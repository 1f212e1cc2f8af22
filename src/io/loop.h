// What an engine runs on: timers, descriptors that become ready, and work that other threads hand in.
//
// The real loop is in epoll_loop.h; a simulator brings its own, in virtual time.
#pragma once

#include <functional>

#include "base/time.h"
#include "io/timer.h"
#include "nexar/result.h"

namespace nexar::io {

// What a watcher wants to hear of. A hang-up or an error is reported in any case.
struct Interest {
  bool read = false;
  bool write = false;
};

// What has come. A hang-up (both directions are gone, or the descriptor has an error) also sets what the watcher is interested in, so
// that reading or writing finds out what it is.
struct Readiness {
  bool read = false;
  bool write = false;
  bool hang_up = false;
};

// Is told when a descriptor is ready, again and again until it is not any more. Owned by its user.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void on_ready(Readiness ready) = 0;
};

// Is asked on every turn, but for those that take turns, whether there is something to do, without a system call of the loop: this is how a
// spinning thread reads its sockets. A poller that reads a descriptor also watches it, so that a turn that blocks wakes up. Owned by its
// user.
class Poller {
 public:
  virtual ~Poller() = default;

  // Does some work, a bounded amount, and returns whether there was any.
  virtual bool poll() = 0;

  // Whether that amount is large beside what others have to do. Of those of whom it is, one works in each turn, so that the others are
  // asked between any two of them.
  virtual bool takes_turns() const { return false; }

  // The turn is about to block. One whose work comes without a descriptor becoming ready says here, to whoever brings it, that it has to be
  // woken from now on; then it looks once more, and returns whether there is nothing to do.
  virtual bool fall_asleep() { return true; }

  // The turn does not block any more. Comes after every fall_asleep().
  virtual void wake_up() {}

  // Shows others what was done for them in this turn; called for those that asked, by Loop::flush_later().
  virtual void flush() {}
};

// Thread: one at a time runs the loop, not always the same one; whoever takes over has synchronised with whoever leaves. Only post() and
// wake() may be called by others meanwhile. Callbacks may call everything but turn().
class Loop {
 public:
  virtual ~Loop() = default;

  // The time at the beginning of this turn, or after its wait. Never goes backwards. Between turns it is old: who starts something then
  // calls refresh() first.
  virtual base::Time now() const = 0;

  // Reads the clock, and returns the new now().
  virtual base::Time refresh() = 0;

  // Calls `watcher` whenever `fd` is ready, until unwatch(fd). The descriptor is unwatched before it is closed. Fails when the kernel
  // cannot watch it.
  virtual Result<void> watch(int fd, Interest interest, Watcher& watcher) = 0;

  // From here on, readiness that is no longer of interest is not reported, also if it is known already.
  virtual void change(int fd, Interest interest) = 0;

  // When this returns, the watcher is not called again for `fd`, also if it was ready together with the one whose callback this is.
  virtual void unwatch(int fd) = 0;

  virtual void add_poller(Poller& poller) = 0;
  virtual void remove_poller(Poller& poller) = 0;

  // Has poller.flush() called before this turn blocks or ends; at once when no turn runs. What is done many times in a turn is shown once.
  virtual void flush_later(Poller& poller) = 0;

  // Something has come that somebody may be waiting for, and more of the kind may follow: for a millisecond, pollers that take turns are to
  // do less in each. In a steady stream of such things each waits for a small turn; without them turns are as long as is efficient.
  virtual void hurry() = 0;
  virtual bool is_hurried() const = 0;

  // One turn: what was posted, the pollers, timers that are due; then, if none of them had anything to do, a wait for descriptors until
  // the next timer and at most `max_wait`; then whatever has become ready. Returns whether anything was done, or wake() was called. With a
  // `max_wait` of zero it never blocks.
  virtual bool turn(base::Duration max_wait) = 0;

  // Runs `work` on the next turn, in the order of posting, and wakes a turn that is blocked. Thread: any. The queue has no limit of its
  // own: whoever posts bounds what it posts. What has not run when the loop is destroyed is destroyed with it.
  virtual void post(std::function<void()> work) = 0;

  // Makes a turn that is blocked return; if none is, the next that would block. What the caller did before is visible when that turn
  // returns. Thread: any.
  virtual void wake() = 0;

  TimerQueue& timers() { return timers_; }

 private:
  TimerQueue timers_;
};

}  // namespace nexar::io
