// A thread inside Engine::wait(). Private to the engine.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>

#include "base/time.h"
#include "runtime/completion.h"

namespace nexar::runtime {

// What a waiting thread waits for, and the word it sleeps on while another drives.
//
// Lives on the stack of its thread. Everything is guarded by the engine's mutex except is_over(), spin() and, while the thread drives, the
// completions. Whoever wakes it does so under the mutex, so that it cannot be gone while it is being woken.
class Waiter {
 public:
  Waiter(std::mutex& mutex, std::span<Completion* const> completions, std::optional<base::Time> deadline, int spins = 1)
      : mutex_(mutex), completions_(completions), deadline_(deadline), spins_(spins) {}
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  std::optional<std::size_t> first_done() const;
  std::optional<base::Time> deadline() const { return deadline_; }
  int spins() const { return spins_; }

  // Whether there is nothing left to wait for at `now`: a completion is done, or the deadline has come.
  bool is_over(base::Time now) const { return (deadline_ && now >= *deadline_) || first_done(); }

  // Has the completions wake this thread. False, and nothing has changed, when one of them is done already.
  bool enlist(std::unique_lock<std::mutex>& lock);

  // Ends that. A complete() that has found this waiter and not yet woken it is waited for: it is between two instructions.
  void withdraw(std::unique_lock<std::mutex>& lock);

  // Wakes the thread, which then looks by itself what there is to do.
  void call();

  bool was_called() const { return called_.load(std::memory_order_relaxed); }
  bool was_completed() const { return completed_ > 0; }

  // Sleeps until it is called, at most for `longest`.
  void sleep(std::unique_lock<std::mutex>& lock, base::Duration longest);

 private:
  friend class Completion;
  void on_complete();

  std::mutex& mutex_;
  std::span<Completion* const> completions_;
  const std::optional<base::Time> deadline_;
  const int spins_;
  std::condition_variable word_;
  std::atomic<bool> called_ = false;  // written under the mutex; read without it by a thread that spins
  std::size_t enlisted_ = 0;          // how many of the completions may know this waiter
  std::size_t completed_ = 0;         // how many of them have called
};

}  // namespace nexar::runtime
