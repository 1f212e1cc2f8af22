// Who runs a group's direct calls at the moment: nobody, a thread inside a blocking call, or the engine.
#pragma once

#include <atomic>
#include <cstdint>

namespace nexar::collective::direct {

// A blocking call takes the word and runs on its own thread; when it cannot have it, because calls are queued or running, it is posted to
// the engine like any other. The engine holds the word from the first queued call to the last.
class Owner {
 public:
  enum class Who : std::uint8_t { kFree, kCaller, kEngine };

  // Whether `who` is the owner now. What the last owner did happens before.
  bool take(Who who) {
    Who free = Who::kFree;
    return word_.compare_exchange_strong(free, who, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void release() { word_.store(Who::kFree, std::memory_order_release); }
  Who who() const { return word_.load(std::memory_order_relaxed); }

 private:
  std::atomic<Who> word_ = Who::kFree;
};

}  // namespace nexar::collective::direct
