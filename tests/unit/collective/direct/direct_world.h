// An area in this process's memory, and one rank's access to it for each rank.
#pragma once

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
                       const io::Clock* clock = nullptr)
      : layout_(ranks, slot_bytes), memory_(static_cast<std::byte*>(::operator new(layout_.bytes(), kAlignment))) {
    layout_.initialise(memory_.get(), first);
    for (Rank rank = 0; rank < ranks; ++rank)
      areas_.emplace_back(memory_.get(), layout_, rank, nullptr, lending.empty() ? nullptr : lending[static_cast<std::size_t>(rank)],
                          tuning, clock);
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
