// The memory that the ranks of one host share in one epoch, and what lies where in it.
//
//   header | a line for each rank | a directory of blocks | rings of each ordered pair of ranks | blocks
//
// Local ranks are the places 0..n-1 of the host's members. A segment is made by the first of them and passed to the others; it is never
// used by a later epoch. Whatever is read from it may have been written by a peer that has gone mad: it is copied once and checked.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "io/shared_memory.h"
#include "nexar/ids.h"
#include "nexar/result.h"
#include "transport/shm/ring.h"

namespace nexar::transport::shm {

inline constexpr std::size_t kLine = 64;
inline constexpr std::size_t kLanes = 4;

// Transfers of one direction of a pair whose bytes are read where they are, at the same time. Others are copied through the ring.
inline constexpr std::size_t kLeases = 64;

// Blocks of one segment: more groups than the memory has room for.
inline constexpr std::size_t kBlocksMax = 1024;

// Rings of one ordered pair, all lanes together. The largest holds eight bulk frames: enough that both ends copy at the same time, and
// little enough to stay in a second-level cache.
inline constexpr std::size_t kPairBytesMax = std::size_t{1} << 20;
inline constexpr std::size_t kPairBytesMin = std::size_t{4} << 10;

// What a local rank tells all the others.
struct alignas(kLine) RankLine {
  std::atomic<std::uint32_t> asleep;  // wake it by its doorbell
  std::atomic<std::uint32_t> awaits;  // and then also when something has changed in a block
};

// The positions of one direction of a pair: a line for each of its ends.
struct PairLines {
  alignas(kLine) std::array<Position, kLanes> tails;  // the writer's
  std::atomic<std::uint32_t> writer_waits;            // for room, or until everything is read
  alignas(kLine) std::array<Position, kLanes> heads;  // the reader's
  alignas(kLine) std::array<Position, kLeases> leases;
};

class HostSegment {
 public:
  // For `ranks` local ranks, at least 2, in at most `budget` bytes, all of which it takes. kOverloaded when that is too little for the
  // rings, or there is not so much memory.
  static Result<std::shared_ptr<HostSegment>> create(int ranks, Epoch epoch, std::uint64_t budget);

  // What the first local rank passed. kRefused when it is not a segment for so many ranks and this epoch.
  static Result<std::shared_ptr<HostSegment>> open(io::FileDescriptor fd, std::uint64_t bytes, int ranks, Epoch epoch);

  int ranks() const { return ranks_; }
  int fd() const { return memory_->fd(); }
  std::uint64_t bytes() const { return memory_->bytes().size(); }

  RankLine& rank(int local) const;

  // One direction of a pair: `from` writes, `to` reads.
  PairLines& lines(int from, int to) const;
  base::ByteSpan ring(int from, int to, std::size_t lane) const;

  // Memory for a group, of `bytes` zeros at a multiple of kLine. All who ask for the same `key`, which is not 0, get the same memory,
  // whoever asks first; it is never given back. kOverloaded when there is no room left, and then for all who ask; kMismatch when another
  // asked for another size. Thread: any.
  Result<base::ByteSpan> block(std::uint64_t key, std::size_t bytes) const;

 private:
  struct Header;
  struct BlockEntry;
  struct Layout;

  HostSegment(std::shared_ptr<io::SharedMemory> memory, int ranks, const Layout& layout);

  std::byte* at(std::size_t offset) const { return memory_->bytes().data() + offset; }
  Header& header() const;
  BlockEntry* entry_of(std::uint64_t key) const;
  std::size_t pair(int from, int to) const;

  std::shared_ptr<io::SharedMemory> memory_;
  int ranks_;
  std::size_t pair_bytes_;  // of the rings
  std::size_t pairs_at_;
  std::size_t blocks_at_;
};

}  // namespace nexar::transport::shm
