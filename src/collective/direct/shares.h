// Which elements of a round each rank reduces: equal shares, or such that all ranks are done at the same time.
//
// Cores of a host are not equally fast: two of them may be threads of one, another may be shared with somebody else's machine, and that
// changes while a job runs. In a call of two stages all wait for the slowest. What it copies nobody can do for it, but the others can
// reduce for it:
//
//   copies of rank i + its share * what the whole reduction would take it = the same for all, or more where the share is the least
//
//                                   three ranks     and a slow one
//   a MiB in and out of slots       200 us each     340 us
//   a MiB of the result             1000 us each    1700 us
//   equal shares                    0.25 each       0.25: done after 765 us
//   by pace                         0.30 each       0.10: all done after 502 us
//
// Every rank finds the same shares from the same numbers, without another word. They say who reduces an element, never how, so that results
// do not depend on them. Whether that pays everybody finds out as well, and wishes it for the next call or not: while shares are sure to be
// equal, a rank knows its own before the others have come, and need not copy it into its slot.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "collective/direct/layout.h"
#include "collective/direct/pace.h"
#include "nexar/ids.h"

namespace nexar::collective::direct {

// Elements [first, first + count).
struct Part {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

class Shares {
 public:
  // Equal ones.
  explicit Shares(Rank ranks) : ranks_(ranks) {}

  // By the pace of each rank, whatever numbers these are; where one does not count they stay equal. Whether it would pay.
  bool go_by(std::span<const Pace> paces);

  // A rank's of `elements`, which are those of a round. Bounds are multiples of `unit`.
  Part of(Rank rank, std::uint64_t elements, std::uint64_t unit) const;

 private:
  // Ends of shares are fractions of this.
  static constexpr std::uint64_t kWhole = std::uint64_t{1} << 24;

  std::uint64_t end(Rank rank) const {
    const auto number = static_cast<std::size_t>(rank);
    return by_pace_ ? ends_[number] : (number + 1) * kWhole / static_cast<std::uint64_t>(ranks_);
  }

  Rank ranks_;
  bool by_pace_ = false;
  std::array<std::uint32_t, kRanksMax> ends_;  // not set while shares are equal, which would take longer than a small call
};

}  // namespace nexar::collective::direct
