// Lets calls into a node, until it is closed for good.
#pragma once

#include <atomic>
#include <cstdint>

namespace nexar::runtime {

// Counts the calls that use the engine, so that it stops only when none does.
//
// Owned by the node. Thread: any.
class CallGate {
 public:
  // A call on its way through; false when the gate is shut. The node outlives it.
  class Pass {
   public:
    explicit Pass(CallGate& gate) : gate_(gate.enter() ? &gate : nullptr) {}
    ~Pass() {
      if (gate_ != nullptr) gate_->leave();
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    explicit operator bool() const { return gate_ != nullptr; }

   private:
    CallGate* gate_;
  };

  // Refuses passes from here on, and returns when all have been given back. Once.
  void shut() {
    for (std::uint64_t now = state_.fetch_or(kShut) | kShut; now != kShut; now = state_.load()) state_.wait(now);
  }

  // After shut(): nothing that was let in before is unfinished any more.
  void open_exit() {
    exit_.store(true);
    exit_.notify_all();
  }
  void wait_for_exit() const { exit_.wait(false); }

 private:
  static constexpr std::uint64_t kShut = std::uint64_t{1} << 63;

  bool enter() {
    if ((state_.fetch_add(1) & kShut) == 0) return true;
    leave();
    return false;
  }
  void leave() {
    if (state_.fetch_sub(1) == (kShut | 1)) state_.notify_all();
  }

  std::atomic<std::uint64_t> state_ = 0;  // passes, and whether it is shut
  std::atomic<bool> exit_ = false;
};

}  // namespace nexar::runtime
