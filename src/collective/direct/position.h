// Where a rank is in the life of a group: a call's sequence number and a round of that call, in one word that peers can watch.
//
// The word wraps, and is compared by its distance: of two positions less than 2^39 calls apart it is known which comes first. Ranks keep
// their words within that of each other (Area::enter).
#pragma once

#include <cstdint>

#include "nexar/ids.h"

namespace nexar::collective::direct {

using Position = std::uint64_t;

inline constexpr int kRoundBits = 24;
inline constexpr std::uint64_t kRoundsMax = std::uint64_t{1} << kRoundBits;  // the last number stands for `all rounds`

constexpr Position position(Sequence sequence, std::uint64_t round) { return (sequence << kRoundBits) | round; }

// After every round of the call.
constexpr Position end_of(Sequence sequence) { return position(sequence, kRoundsMax - 1); }

// Whether a rank that was `seen` there has come as far as `wanted`.
constexpr bool reached(Position seen, Position wanted) { return static_cast<std::int64_t>(seen - wanted) >= 0; }

}  // namespace nexar::collective::direct
