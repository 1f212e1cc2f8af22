// What a rank publishes and what it takes, round by round: the same few numbers for every kernel.
//
// A buffer, or each rank's block of it, is cut into rounds that fit into a slot. In each round a rank publishes (copies its part into its
// slot) and takes what others have published there: copies it, or reduces it from all of them at once. Large reductions take two stages,
// so that every value is reduced once and not once for each rank:
//
//   one stage      publish ----> reduce everything from all slots into the result
//   two stages     publish ----> reduce the own slice from all slots into the own slot ----> copy all slices into the result
//
//                    slot holds           takes from                      result
//   all_reduce       the buffer           all                             reduced
//   reduce           the buffer           all (one stage: only the root)  reduced, at the root
//   scan             the buffer           ranks up to this one            reduced
//   reduce_scatter   a block for each     all, the own block              reduced
//   all_to_all       a block for each     all, the own block              side by side
//   all_gather       the buffer           all                             side by side
//   gather           the buffer           all, at the root                side by side, at the root
//   scatter          a block for each     the root, the own block         as it is
//   broadcast        the buffer           the root                        as it is
//   barrier          nothing              all                             nothing
#pragma once

#include <cstddef>
#include <cstdint>

#include "collective/direct/call.h"
#include "collective/direct/layout.h"
#include "collective/direct/shares.h"

namespace nexar::collective::direct {

enum class Take : std::uint8_t { kNothing, kCopy, kReduce };

struct Ranks {
  Rank first = 0;
  Rank end = 0;

  bool contains(Rank rank) const { return first <= rank && rank < end; }
  Rank size() const { return end - first; }
};

// From which size on a call is done in another way, in bytes of its buffer or block. All ranks of an area have the same; only the streaming
// and the shares may differ.
struct Tuning {
  // Up to here every rank reduces everything: one meeting less is worth more than reducing each value once. With two ranks both ways move
  // the same bytes between them, so that one stage is never worse.
  std::size_t one_stage_two_ranks = SIZE_MAX;
  std::size_t one_stage = 4u << 10;

  // From here on slots are filled past the caches: on many CPUs a line that another core has written and not given back is what takes
  // longest to read, and to write again. Large calls find out by themselves what is better (streaming.h).
  std::size_t stream_in = 16u << 10;

  // From here on results are stored past the caches. Below it hurts, because the result is used next.
  std::size_t stream_out = 4u << 20;

  // From here on memory that can be lent is. What fits into the owner's cache is read from there line by line, which takes longer than the
  // copy that it saves: 4 MiB took 970 us lent and 305 copied, 64 MiB 5.2 ms and 7.2.
  std::size_t lend = 32u << 20;

  // From here on ranks reduce as much as suits their pace (shares.h), if all of them tell it. Below, what they wait for is each other's
  // words rather than each other's work. A rank that shares its core tells nothing: its times are also those of whoever had it.
  std::size_t shares_by_pace = 256u << 10;
};

struct Pattern {
  // `lent`: some rank lends memory in this call; the same on all ranks.
  Pattern(const Call& call, Rank rank, const Layout& layout, const Tuning& tuning, bool lent = false);

  // Whether memory may be lent in such a call: all ranks find the same.
  bool may_lend() const { return bytes() >= tuning_lend; }

  // Whether it is done otherwise when somebody does, so that ranks have to know that before they begin.
  bool depends_on_lending() const { return may_lend() && !two_stages && could_take_two; }

  // Of what a rank publishes.
  std::uint64_t bytes() const { return count * element * static_cast<std::uint64_t>(blocks); }

  // Of the larger of a rank's buffers: all ranks find the same.
  std::uint64_t bytes_max() const { return count * element * static_cast<std::uint64_t>(blocks == 1 && !side_by_side ? 1 : ranks); }

  // Whether a call of any size can be numbered: more rounds than kRoundsMax cannot.
  bool fits() const { return rounds < kRoundsMax - 1; }

  Part part(std::uint64_t round) const;
  std::size_t element = 1;   // bytes
  std::uint64_t count = 0;   // elements of a block
  std::uint64_t chunk = 0;   // elements of a block in a round
  std::uint64_t rounds = 1;  // at least one, also of nothing: ranks meet there
  Rank ranks = 1;
  Rank blocks = 1;            // of the published buffer: one, or one for each rank
  bool side_by_side = false;  // the result has a part for each rank
  bool two_stages = false;
  bool shares_by_pace = false;
  bool tiny = false;            // travels in the header
  std::size_t tuning_lend = 0;  // Tuning::lend
  bool publishes = false;       // this rank does
  bool own_from_slot = false;   // the own values are read from the own slot, because a user op may not overwrite them while it works
  bool could_take_two = false;  // a reduction of a buffer, by more than one rank
  bool streams_in = false;      // slots are filled past the caches
  bool streams_out = false;     // the result is too large to be wanted in the cache
  Take take = Take::kNothing;
  Ranks sources{};  // whose slots this rank takes from, or waits for
  Ranks readers{};  // who takes from this rank's slot
};

}  // namespace nexar::collective::direct
