// How fast a rank copies and reduces, as it tells the others: by that they share out the reductions (shares.h).
//
// Thread: as the area.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace nexar::collective::direct {

// Nanoseconds for a MiB of a round, less than 2^31. 0: not known.
struct Pace {
  std::uint32_t copies = 0;      // into the slot and out of the others', as far as the rank has to
  std::uint32_t reductions = 0;  // a MiB of the result, from all ranks
  bool counts = false;           // shares are to go by it, if those of all ranks count

  bool is_known() const { return reductions != 0; }

  // As a word of the shared memory.
  std::uint64_t word() const { return (std::uint64_t{copies} << 32) | (counts ? kCounts : 0) | reductions; }
  static Pace from_word(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word >> 32), static_cast<std::uint32_t>(word % kCounts), (word & kCounts) != 0};
  }

 private:
  static constexpr std::uint64_t kCounts = std::uint64_t{1} << 31;
};

// Measures this rank's. What is told is of the calls before, the last of which counts a quarter: cores become slow and fast again within a
// tenth of a second, and one call in which a core was taken away for a moment says little.
class PaceMeter {
 public:
  // Of a call in which every byte is copied `copies` times. It counts if the last look at everybody's found that shares by pace pay.
  Pace pace(unsigned copies) const;
  void found_that_shares_pay(bool pay) { shares_pay_ = pay; }

  // A call has begun, does this, and has succeeded.
  void begin() { copied_ = reduced_ = {}; }
  void copied(base::Duration time, std::uint64_t bytes) { copied_.add(time, bytes); }
  void reduced(base::Duration time, std::uint64_t bytes) { reduced_.add(time, bytes); }
  void end();

 private:
  struct Sum {
    base::Duration time{};
    std::uint64_t bytes = 0;

    void add(base::Duration more, std::uint64_t of_bytes) {
      time += more;
      bytes += of_bytes;
    }
  };

  static void learn(float& known, const Sum& sum);

  Sum copied_{};
  Sum reduced_{};
  float copy_ = 0;  // nanoseconds for a MiB
  float reduction_ = 0;
  bool shares_pay_ = false;
};

}  // namespace nexar::collective::direct
