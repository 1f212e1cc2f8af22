// What the memory that the ranks of a group share looks like.
//
//   rank 0                                          rank 1
//   | progress | header 0 | body 0 | header 1 | body 1 | progress | ...
//
// Each rank writes its own part only, and reads the others'. A rank has two slots, used in turn: while peers read one, it fills the other.
// What fits into 48 bytes travels in the slot's header, so that a tiny call costs each reader one cache line of each rank.
//
// Everything here is read by processes that may be broken: values are copied once, and none of them is used as an index.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "collective/direct/position.h"
#include "nexar/ids.h"

namespace nexar::collective::direct {

inline constexpr std::size_t kCacheLine = 64;
inline constexpr std::size_t kInlineBytes = 48;

// Ranks of one host that share an area. A call keeps a pointer for each on its stack.
inline constexpr Rank kRanksMax = 256;

// Between two ranks 1 MiB took 98 us in slots of 256 KiB, 94 in these and 90 in twice as large ones, which are worse from 16 MiB on.
inline constexpr std::size_t kSlotBytes = 512u << 10;
inline constexpr std::size_t kSlotBytesMin = kRanksMax * kCacheLine;  // a line for each rank's block

// The order of the store that makes what was written before it visible. Only a test that shows what happens otherwise defines another.
#ifndef NEXAR_DIRECT_PUBLISH_ORDER
#define NEXAR_DIRECT_PUBLISH_ORDER std::memory_order_release
#endif
inline constexpr std::memory_order kPublish = NEXAR_DIRECT_PUBLISH_ORDER;

// How far a rank is. Written at the end of every call, read by others only when they have to wait for it: it costs nothing until then.
struct alignas(2 * kCacheLine) Progress {
  std::atomic<Position> left;        // reads nothing any more that was published up to here
  std::atomic<Sequence> entered;     // the call that it has begun, and
  std::atomic<std::uint64_t> call;   // what it called there
  std::atomic<Sequence> failed;      // the last call that it ended without success
  std::atomic<std::uint64_t> lends;  // twice the number of the last call whose memory may be lent, and one more if it lends there
};

// Where readers find what a rank gives, when that is not in its slot.
struct Lent {
  std::uint32_t lent = 0;    // whether it is; a number so that every bit pattern is a value
  std::uint32_t buffer = 0;  // which of the rank's shared buffers
  std::uint64_t offset = 0;  // of the first byte there
};

// Two pieces of memory that a rank may lend: what it gives, and where it puts the result.
struct Loan {
  Lent input;
  Lent output;
};

// Instead of a fingerprint: the rank has given the call up. A call has it as seldom as another's.
inline constexpr std::uint64_t kGivenUp = UINT64_MAX;

struct alignas(kCacheLine) Header {
  std::atomic<Position> position;          // of what the slot holds
  std::atomic<std::uint64_t> fingerprint;  // of the call that it belongs to
  // A tiny call's bytes, otherwise what goes with a body.
  union {
    std::byte payload[kInlineBytes];
    struct {
      Loan loan;
      std::atomic<Position> reduced;    // the same position again when the rank's slice of the result is there
      std::atomic<std::uint64_t> pace;  // of the rank in this call (pace.h); the first round's counts
    } with_body;
  };
};
static_assert(sizeof(Header) == kCacheLine);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "the words are shared between processes");

// One rank's part.
class Layout {
 public:
  // `slot_bytes` is a multiple of a cache line and at least kSlotBytesMin.
  constexpr Layout(Rank ranks, std::size_t slot_bytes) : ranks_(ranks), slot_bytes_(slot_bytes) {}

  // The largest slots that `bytes` of memory hold, at most kSlotBytes; 0 when the memory is too small.
  static std::size_t slot_bytes_for(std::size_t bytes, Rank ranks);

  constexpr Rank ranks() const { return ranks_; }
  constexpr std::size_t slot_bytes() const { return slot_bytes_; }
  constexpr std::size_t bytes() const { return static_cast<std::size_t>(ranks_) * rank_bytes(); }

  Progress& progress(std::byte* base, Rank rank) const { return *std::launder(reinterpret_cast<Progress*>(part(base, rank))); }
  Header& header(std::byte* base, Rank rank, unsigned slot) const {
    return *std::launder(reinterpret_cast<Header*>(part(base, rank) + sizeof(Progress) + slot * slot_stride()));
  }
  std::byte* body(std::byte* base, Rank rank, unsigned slot) const {
    return part(base, rank) + sizeof(Progress) + slot * slot_stride() + sizeof(Header);
  }

  // Makes zeroed memory an area whose first call has the number `first`. One rank does it, before any other looks.
  void initialise(std::byte* base, Sequence first) const;

 private:
  constexpr std::size_t slot_stride() const { return sizeof(Header) + slot_bytes_; }
  std::byte* part(std::byte* base, Rank rank) const { return base + static_cast<std::size_t>(rank) * rank_bytes(); }
  constexpr std::size_t rank_bytes() const { return sizeof(Progress) + 2 * slot_stride(); }

  Rank ranks_;
  std::size_t slot_bytes_;
};

}  // namespace nexar::collective::direct
