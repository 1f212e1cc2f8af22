// An area in this process's memory, and one rank's access to it for each rank.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "collective/direct/area.h"
#include "collective/direct/run.h"
#include "io/clock.h"

namespace nexar::test {

class DirectWorld {
 public:
  explicit DirectWorld(Rank ranks, Sequence first = 1, std::size_t slot_bytes = collective::direct::kSlotBytesMin,
                       const std::vector<const collective::direct::Lending*>& lending = {}, const collective::direct::Tuning& tuning = {},
                       const std::vector<const io::Clock*>& clocks = {})
      : layout_(ranks, slot_bytes), memory_(static_cast<std::byte*>(::operator new(layout_.bytes(), kAlignment))) {
    layout_.initialise(memory_.get(), first);
    for (Rank rank = 0; rank < ranks; ++rank)
      areas_.emplace_back(memory_.get(), layout_, rank, nullptr, lending.empty() ? nullptr : lending[static_cast<std::size_t>(rank)],
                          tuning, clocks.empty() ? nullptr : clocks[static_cast<std::size_t>(rank)]);
  }

  collective::direct::Area& area(Rank rank) { return areas_[static_cast<std::size_t>(rank)]; }
  Rank ranks() const { return layout_.ranks(); }
  const collective::direct::Layout& layout() const { return layout_; }
  std::byte* memory() { return memory_.get(); }

  // Runs `body(rank)` on a thread for each rank.
  template <typename Body>
  void run(Body body) {
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < ranks(); ++rank) threads.emplace_back([&body, rank] { body(rank); });
    for (auto& thread : threads) thread.join();
  }

 private:
  static constexpr std::align_val_t kAlignment{4096};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }
  };

  collective::direct::Layout layout_;
  std::unique_ptr<std::byte, Free> memory_;
  std::deque<collective::direct::Area> areas_;
};

// Every look at it takes so long: ranks with other clocks of this kind are faster or slower, and know it.
class SteppingClock : public io::Clock {
 public:
  explicit SteppingClock(base::Duration step) : step_(step) {}
  base::Time now() const override { return now_ += step_; }
  std::chrono::sys_seconds wall() const override { return {}; }
  void go_by(base::Duration step) { step_ = step; }
  base::Duration step() const { return step_; }
  void pass(base::Duration time) { now_ += time; }

 private:
  base::Duration step_;
  mutable base::Time now_{};
};

// One for each rank, each of another pace.
class SteppingClocks {
 public:
  explicit SteppingClocks(Rank ranks) {
    for (Rank rank = 0; rank < ranks; ++rank) clocks_.emplace_back(std::chrono::microseconds(10 + rank * 7 % 30));
  }
  std::vector<const io::Clock*> all() const {
    std::vector<const io::Clock*> pointers;
    for (const SteppingClock& clock : clocks_) pointers.push_back(&clock);
    return pointers;
  }
  SteppingClock& of(Rank rank) { return clocks_[static_cast<std::size_t>(rank)]; }

 private:
  std::deque<SteppingClock> clocks_;
};

// Waits as long as it takes: the test's own time limit ends what never would.
class Endless : public collective::direct::Patience {
 public:
  collective::direct::Outcome look(std::uint64_t) override { return collective::direct::Outcome::kWaiting; }
};

// For threads on fewer cores than ranks.
inline constexpr collective::direct::Spin kPoliteSpin{8};

// One rank's call, to its end.
inline collective::direct::Outcome run_blocking(collective::direct::Area& area, const collective::direct::Call& call) {
  Endless endless;
  collective::direct::Operation operation(area, call);
  return collective::direct::run(operation, endless, kPoliteSpin);
}

}  // namespace nexar::test
