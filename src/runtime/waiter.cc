#include "runtime/waiter.h"

#include "base/assert.h"

namespace nexar::runtime {

void Completion::complete() {
  const std::uintptr_t before = state_.exchange(kDone, std::memory_order_acq_rel);
  NEXAR_ASSERT(before != kDone, "an operation ends once");
  if (before != kPending) reinterpret_cast<Waiter*>(before)->on_complete();
}

std::optional<std::size_t> Waiter::first_done() const {
  for (std::size_t i = 0; i < completions_.size(); ++i)
    if (completions_[i]->is_done()) return i;
  return std::nullopt;
}

bool Waiter::enlist(std::unique_lock<std::mutex>& lock) {
  for (Completion* completion : completions_) {
    std::uintptr_t state = Completion::kPending;
    if (!completion->state_.compare_exchange_strong(state, reinterpret_cast<std::uintptr_t>(this), std::memory_order_acq_rel)) {
      NEXAR_ASSERT(state == Completion::kDone, "one thread at a time waits for a completion, and names it once");
      withdraw(lock);
      return false;
    }
    ++enlisted_;
  }
  return true;
}

void Waiter::withdraw(std::unique_lock<std::mutex>& lock) {
  std::size_t done = 0;
  for (Completion* completion : completions_.first(enlisted_)) {
    std::uintptr_t state = reinterpret_cast<std::uintptr_t>(this);
    if (!completion->state_.compare_exchange_strong(state, Completion::kPending, std::memory_order_acq_rel)) ++done;
  }
  while (completed_ < done) word_.wait(lock);
  enlisted_ = 0;
  completed_ = 0;
  called_.store(false, std::memory_order_relaxed);
}

void Waiter::call() {
  called_.store(true, std::memory_order_relaxed);
  word_.notify_one();
}

void Waiter::sleep(std::unique_lock<std::mutex>& lock, base::Duration longest) {
  word_.wait_for(lock, longest, [this] { return was_called(); });
}

void Waiter::on_complete() {
  const std::lock_guard lock(mutex_);
  ++completed_;
  call();
}

}  // namespace nexar::runtime
