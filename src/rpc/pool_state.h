// How many threads run handlers, and which calls may wait for one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "rpc/limits.h"

namespace nexar::rpc {

// The counts behind a WorkerPool, without threads.
//
//   threads = idle + active + waiting        at most workers + spares
//
// At most `workers` are active: in a handler that does not wait. A handler that waits in nexar is no load, and a spare takes its place;
// when all threads wait nothing more can run, and what is queued may be what they wait for: so it is refused, and so is what comes.
//
// Guarded by its owner.
class PoolState {
 public:
  explicit PoolState(const PoolLimits& limits) : limits_(limits), threads_max_(std::size_t{limits.workers} + limits.spares) {}

  enum class Admission : std::uint8_t { kQueued, kFull, kNoThreadLeft };

  // A call wants to wait for a worker.
  Admission admit() {
    if (is_stuck()) return Admission::kNoThreadLeft;
    if (queued_ >= limits_.queue) return Admission::kFull;
    ++queued_;
    return Admission::kQueued;
  }

  // A queued call has gone without having run.
  void withdrawn() { --queued_; }

  // Whether an idle thread may begin with a call.
  bool may_take() const { return queued_ > 0 && active_ < limits_.workers; }

  // Whether there are fewer idle threads than calls that could run: then another one is started, and added.
  bool wants_thread() const {
    return threads_ < threads_max_ &&
           idle_ < std::min<std::size_t>(queued_, limits_.workers - std::min<std::size_t>(active_, limits_.workers));
  }
  void thread_added() {
    ++threads_;
    ++idle_;
  }

  // The process may have no more threads: those that there are have to do.
  void thread_refused() {
    --threads_;
    --idle_;
    threads_max_ = threads_;
  }

  void begins() {
    NEXAR_ASSERT(may_take() && idle_ > 0, "a thread takes a call when it may");
    --queued_;
    --idle_;
    ++active_;
  }
  void ends() {
    --active_;
    ++idle_;
  }

  // A handler waits, and goes on.
  void waits() {
    --active_;
    ++waiting_;
  }
  void resumes() {
    --waiting_;
    ++active_;
  }

  // No thread is left that could run anything.
  bool is_stuck() const { return waiting_ == threads_max_; }

  std::size_t queued() const { return queued_; }
  std::size_t idle() const { return idle_; }
  std::size_t active() const { return active_; }
  std::size_t waiting() const { return waiting_; }
  std::size_t threads() const { return threads_; }

 private:
  PoolLimits limits_;
  std::size_t threads_max_;
  std::size_t queued_ = 0;
  std::size_t idle_ = 0;
  std::size_t active_ = 0;
  std::size_t waiting_ = 0;
  std::size_t threads_ = 0;
};

}  // namespace nexar::rpc
