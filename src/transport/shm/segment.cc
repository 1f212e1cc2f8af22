#include "transport/shm/segment.h"

#include <bit>
#include <new>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/units.h"

namespace nexar::transport::shm {
namespace {

constexpr std::uint64_t kMagic = 0x6d68732072617865;  // "exar shm"
constexpr std::uint64_t kVersion = 1;

// Eighths of a pair's bytes: control, rpc, data, bulk.
constexpr std::array<std::size_t, kLanes> kLaneEighths = {1, 1, 2, 4};
constexpr std::array<std::size_t, kLanes> kLaneOffsets = {0, 1, 2, 4};

// A block's place while whoever asked first finds it. The others wait for a few instructions, unless that one was stopped in between.
constexpr std::uint64_t kUnplaced = 0;
constexpr std::uint64_t kNoRoom = UINT64_MAX;
constexpr int kPlacingYields = 100'000;

std::size_t aligned(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

struct alignas(kLine) HostSegment::Header {
  std::uint64_t magic;
  std::uint64_t version;
  std::uint64_t epoch;
  std::uint64_t ranks;
  std::uint64_t pair_bytes;
  alignas(kLine) std::atomic<std::uint64_t> blocks_end;  // bytes of blocks that are taken
};

struct HostSegment::BlockEntry {
  std::atomic<std::uint64_t> key;
  std::atomic<std::uint64_t> bytes;
  std::atomic<std::uint64_t> place;  // kUnplaced, kNoRoom, or 1 and the offset
};

struct HostSegment::Layout {
  static constexpr std::size_t kPage = 4096;

  Layout(int ranks, std::size_t bytes_of_pair) : pair_bytes(bytes_of_pair) {
    const auto n = static_cast<std::size_t>(ranks);
    pairs_at = aligned(sizeof(Header) + n * sizeof(RankLine) + kBlocksMax * sizeof(BlockEntry), kPage);
    blocks_at = aligned(pairs_at + n * n * (sizeof(PairLines) + pair_bytes), kPage);
  }

  std::size_t pair_bytes;
  std::size_t pairs_at;
  std::size_t blocks_at;
};

HostSegment::HostSegment(std::shared_ptr<io::SharedMemory> memory, int ranks, const Layout& layout)
    : memory_(std::move(memory)), ranks_(ranks), pair_bytes_(layout.pair_bytes), pairs_at_(layout.pairs_at), blocks_at_(layout.blocks_at) {}

// Rings take half of the budget at most.
Result<std::shared_ptr<HostSegment>> HostSegment::create(int ranks, Epoch epoch, std::uint64_t budget) {
  NEXAR_ASSERT(ranks >= 2, "nobody shares memory with himself");
  std::size_t pair_bytes = kPairBytesMax;
  while (pair_bytes > kPairBytesMin && Layout(ranks, pair_bytes).blocks_at > budget / 2) pair_bytes /= 2;
  const Layout layout(ranks, pair_bytes);
  if (layout.blocks_at > budget / 2)
    return Error(ErrorCode::kOverloaded, fmt::format("the rings of {} ranks need {} of shared memory, and the budget is {}", ranks,
                                                     base::format_size(2 * layout.blocks_at), base::format_size(budget)));
  Result<std::shared_ptr<io::SharedMemory>> memory = io::SharedMemory::create(budget / Layout::kPage * Layout::kPage);
  if (!memory) return std::move(memory).error();
  std::shared_ptr<HostSegment> segment(new HostSegment(*std::move(memory), ranks, layout));
  Header& header = segment->header();
  header.magic = kMagic;
  header.version = kVersion;
  header.epoch = epoch;
  header.ranks = static_cast<std::uint64_t>(ranks);
  header.pair_bytes = pair_bytes;
  return segment;
}

Result<std::shared_ptr<HostSegment>> HostSegment::open(io::FileDescriptor fd, std::uint64_t bytes, int ranks, Epoch epoch) {
  Result<std::shared_ptr<io::SharedMemory>> memory = io::SharedMemory::map(std::move(fd), bytes);
  if (!memory) return std::move(memory).error();
  const auto refused = [](std::string_view why) {
    return Error(ErrorCode::kRefused, fmt::format("shared memory was passed that {}", why));
  };
  if (bytes < sizeof(Header)) return refused("is too short");
  const auto* header = reinterpret_cast<const Header*>((*memory)->bytes().data());
  if (header->magic != kMagic || header->version != kVersion) return refused("has no segment of this version in it");
  if (header->epoch != epoch || header->ranks != static_cast<std::uint64_t>(ranks)) return refused("is of another world or epoch");
  const std::uint64_t pair_bytes = header->pair_bytes;
  if (pair_bytes < kPairBytesMin || pair_bytes > kPairBytesMax || !std::has_single_bit(pair_bytes)) return refused("has impossible rings");
  const Layout layout(ranks, pair_bytes);
  if (layout.blocks_at > bytes) return refused("is shorter than its rings");
  return std::shared_ptr<HostSegment>(new HostSegment(*std::move(memory), ranks, layout));
}

HostSegment::Header& HostSegment::header() const { return *std::launder(reinterpret_cast<Header*>(at(0))); }

RankLine& HostSegment::rank(int local) const {
  NEXAR_ASSERT(local >= 0 && local < ranks_, "a local rank");
  return *std::launder(reinterpret_cast<RankLine*>(at(sizeof(Header) + static_cast<std::size_t>(local) * sizeof(RankLine))));
}

std::size_t HostSegment::pair(int from, int to) const {
  NEXAR_ASSERT(from >= 0 && from < ranks_ && to >= 0 && to < ranks_ && from != to, "two local ranks");
  return static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(to);
}

PairLines& HostSegment::lines(int from, int to) const {
  return *std::launder(reinterpret_cast<PairLines*>(at(pairs_at_ + pair(from, to) * sizeof(PairLines))));
}

base::ByteSpan HostSegment::ring(int from, int to, std::size_t lane) const {
  const std::size_t rings_at = pairs_at_ + static_cast<std::size_t>(ranks_) * static_cast<std::size_t>(ranks_) * sizeof(PairLines);
  const std::size_t eighth = pair_bytes_ / 8;
  return {at(rings_at + pair(from, to) * pair_bytes_ + kLaneOffsets[lane] * eighth), kLaneEighths[lane] * eighth};
}

// The entry of a key, which is taken if nobody has; null when all are taken.
HostSegment::BlockEntry* HostSegment::entry_of(std::uint64_t key) const {
  auto* entries = std::launder(reinterpret_cast<BlockEntry*>(at(sizeof(Header) + static_cast<std::size_t>(ranks_) * sizeof(RankLine))));
  for (std::size_t i = 0; i < kBlocksMax; ++i) {
    std::uint64_t there = 0;
    if (entries[i].key.compare_exchange_strong(there, key) || there == key) return &entries[i];
  }
  return nullptr;
}

Result<base::ByteSpan> HostSegment::block(std::uint64_t key, std::size_t bytes) const {
  NEXAR_ASSERT(key != 0, "a block has a name");
  const std::size_t space = memory_->bytes().size() - blocks_at_;
  const Error full(ErrorCode::kOverloaded, fmt::format("{} of shared memory cannot be had: {} are for groups, most of them taken",
                                                       base::format_size(bytes), base::format_size(space)));
  BlockEntry* entry = entry_of(key);
  if (entry == nullptr || bytes == 0 || bytes > space) return full;
  std::uint64_t asked = 0;
  if (entry->bytes.compare_exchange_strong(asked, bytes)) {
    const std::uint64_t from = header().blocks_end.fetch_add(aligned(bytes, kLine));
    entry->place.store(from > space - bytes ? kNoRoom : from + 1);
    asked = bytes;
  }
  if (asked != bytes)
    return Error(ErrorCode::kMismatch,
                 fmt::format("a group's shared memory was asked for with {} bytes by one rank and {} by another", asked, bytes));
  std::uint64_t place = entry->place.load();
  for (int i = 0; place == kUnplaced && i < kPlacingYields; ++i, place = entry->place.load()) std::this_thread::yield();
  if (place == kUnplaced || place == kNoRoom || place - 1 > space - bytes || (place - 1) % kLine != 0) return full;
  return base::ByteSpan(at(blocks_at_ + static_cast<std::size_t>(place - 1)), bytes);
}

}  // namespace nexar::transport::shm
