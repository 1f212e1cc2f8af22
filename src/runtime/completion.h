// The end of an operation, as a thread waits for it.
#pragma once

#include <atomic>
#include <cstdint>

namespace nexar::runtime {

class Waiter;

// Becomes done once, on the engine's thread, and wakes exactly the thread that waits for it, if one does.
//
// Owned by the operation; it outlives every wait for it, and may be destroyed as soon as it is seen to be done. One thread at a time
// waits for it.
class Completion {
 public:
  Completion() = default;
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  // One load. What the engine wrote before complete() is visible to whoever sees true. Thread: any.
  bool is_done() const { return state_.load(std::memory_order_acquire) == kDone; }

  // Called once. Nothing of this object is touched after somebody can see that it is done. Thread: engine.
  void complete();

  // Makes a done one pending again, for the next operation. Thread: the owner's, while nobody waits.
  void reset() { state_.store(kPending, std::memory_order_relaxed); }

 private:
  friend class Waiter;

  // The state is one of these, or the address of the Waiter that sleeps.
  static constexpr std::uintptr_t kPending = 0;
  static constexpr std::uintptr_t kDone = 1;

  std::atomic<std::uintptr_t> state_ = kPending;
};

}  // namespace nexar::runtime
