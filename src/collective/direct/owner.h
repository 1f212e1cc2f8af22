// Who runs a group's direct calls at the moment: the thread that calls, or the engine.
#pragma once

#include <atomic>
#include <cstdint>

namespace nexar::collective::direct {

// Counts the reasons for which calls go to the engine: calls that were given to it and have not ended, and things that only it knows. While
// there is none, a blocking call runs on the thread that makes it; there is one such thread at a time.
class Owner {
 public:
  // Asked by the thread whose turn it is to call. What the engine did before happens before.
  bool is_caller() const { return reasons_.load(std::memory_order_acquire) == 0; }

  // Before a call is given to the engine, by whoever gives it; or by the engine, for calls to come.
  void add_reason() { reasons_.fetch_add(1, std::memory_order_relaxed); }
  // On the engine.
  void remove_reason() { reasons_.fetch_sub(1, std::memory_order_release); }

 private:
  std::atomic<std::uint32_t> reasons_ = 0;
};

}  // namespace nexar::collective::direct
