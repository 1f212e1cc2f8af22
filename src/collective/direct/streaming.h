// Whether a call fills slots and stores its result through the caches or past them: learned from the application's own calls.
//
// It depends on the CPU, on which caches the ranks' cores share, and on what happens to the memory between calls. On one virtual machine
// 4 MiB between two ranks took 245 us through the caches and 340 past them, and 560 and 380 in another minute, when its cores had been
// moved; in a third, 1960 and 275. So the first of every 512 large calls of a kind and size try the ways one after the other:
//
//   calls        0 .. 4       5 .. 9                10 .. 14                  15 .. 19                    20 .. 511
//   way          as tuned     both the other way    slots the other way       the result the other way    the best of the four
//
// All four, because one alone may not pay where both do: 16 MiB among eight ranks took 6.7 ms past the caches, 7.2 with slots through them,
// and 4.7 with the result through them too. Calls of 32 MiB and more try each way four times: they are long, but not so long that chance,
// such as a core that is taken away for some milliseconds, had nothing to say. Calls of less than 1 MiB try two ways, more often: their
// result is always stored as tuned.
//
// All ranks make the same calls in the same order, so that they try the same way in the same call without a word about it. Each rank then
// keeps what was best for it; results do not depend on it.
//
// Thread: as the area. Nothing is allocated.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/time.h"
#include "io/clock.h"
#include "types/operation_id.h"

namespace nexar::collective::direct {

// What goes past the caches.
struct Way {
  bool in = false;   // what is put into slots
  bool out = false;  // the result

  bool operator==(const Way&) const = default;
};

class Streaming {
 public:
  // Bytes from which on it matters how slots are filled. 256 KiB among sixteen ranks took 125 us past the caches and 90 through them.
  static constexpr std::uint64_t kFrom = std::uint64_t{64} << 10;

  // And from which on it matters where the result goes. What is smaller stays in the caches of today.
  static constexpr std::uint64_t kResultFrom = std::uint64_t{1} << 20;

  static constexpr std::uint32_t ways(std::uint64_t bytes) { return bytes < kResultFrom ? 2 : 4; }

  // Calls that try one way, the first of which is not counted: it finds what the way before has left in the caches.
  static constexpr std::uint32_t calls_of_way(std::uint64_t bytes) {
    if (bytes < kResultFrom) return 9;
    return bytes < (std::uint64_t{32} << 20) ? 5 : 4;
  }
  static constexpr std::uint32_t trials(std::uint64_t bytes) { return ways(bytes) * calls_of_way(bytes); }
  static constexpr std::uint32_t kPeriod = 512;  // a way that takes twice as long costs a hundredth on the whole

  // Another way is worth taking only if it saves this much: less than that is chance.
  static constexpr float kWorthwhile = 0.97F;

  // A way whose first two calls took so much longer is not tried any further: there are some that take seven times as long.
  static constexpr float kHopeless = 2;

  explicit Streaming(const io::Clock& clock) : clock_(clock) {}

  struct Kind {
    OperationId operation = OperationId::kBarrier;
    bool lends = false;       // this rank lends memory, and fills no slots with it
    std::uint64_t bytes = 0;  // of the whole buffer, the same on all ranks; at least kFrom
  };

  class Trial;

  // A call begins. `tuned` is the way that it would take.
  Trial begin(const Kind& kind, Way tuned);

  // It has succeeded. Of one that has not nothing is learned.
  void end(const Trial& trial);

 private:
  static constexpr float kNever = std::numeric_limits<float>::infinity();

  struct Learned {
    std::uint32_t calls = 0;
    Way best{};
    Way tried{};               // of the calls now; the best when there is nothing to try
    float best_time = kNever;  // nanoseconds per byte, the least of the calls that counted
    float tried_time = kNever;
    float first_time = kNever;  // of the way that is tried: the call that does not count
  };

  static constexpr std::size_t kSizes = 12;  // from kFrom in powers of two; the last has no end
  Learned& learned(const Kind& kind);
  static void turn(Learned& one, std::uint32_t way, std::uint32_t ways, Way tuned);

  const io::Clock& clock_;
  std::array<std::array<std::array<Learned, kSizes>, 2>, kOperationIdMax + 1> learned_{};
};

// One call: which way it takes, and the time that it takes.
class Streaming::Trial {
 public:
  Trial() = default;
  Way way() const { return way_; }

  // Peers that come late say nothing about the way: the time until the ranks have met does not count.
  void wait_for_peers() {
    if (learned_ != nullptr && !waits_since_) waits_since_ = clock_->now();
  }
  void have_met() {
    if (!waits_since_) return;
    begun_ += clock_->now() - *waits_since_;
    waits_since_.reset();
  }

 private:
  friend class Streaming;
  Way way_{};
  Learned* learned_ = nullptr;  // null when nothing is learned from it
  const io::Clock* clock_ = nullptr;
  bool is_first_ = false;
  std::uint64_t bytes_ = 0;
  base::Time begun_{};
  std::optional<base::Time> waits_since_{};
};

}  // namespace nexar::collective::direct
