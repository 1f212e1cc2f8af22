// Lists of memory regions as one run of bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "base/bytes.h"
#include "base/stream_copy.h"
#include "nexar/message.h"

namespace nexar::mesh {

template <typename R>
std::uint64_t total_bytes(std::span<const R> regions) {
  std::uint64_t total = 0;
  for (const R& region : regions) total += region.bytes;
  return total;
}

// Walks through regions from the front; what is behind is done.
template <typename R>
class RegionCursor {
 public:
  RegionCursor() = default;
  explicit RegionCursor(std::span<const R> regions, std::size_t at = 0) : regions_(regions), at_(at) { skip_empty(); }

  // The rest of the region at the cursor, at most `most` bytes; empty at the end.
  auto piece(std::size_t most) const {
    using Byte = std::conditional_t<std::is_same_v<R, Region>, std::byte, const std::byte>;
    if (regions_.empty()) return std::span<Byte>();
    const R& region = regions_.front();
    return std::span<Byte>(static_cast<Byte*>(region.data) + at_, std::min(most, region.bytes - at_));
  }

  void advance(std::size_t bytes) {
    at_ += bytes;
    skip_empty();
  }

 private:
  void skip_empty() {
    while (!regions_.empty() && at_ == regions_.front().bytes) {
      regions_ = regions_.subspan(1);
      at_ = 0;
    }
  }

  std::span<const R> regions_;
  std::size_t at_ = 0;
};

// Finds places in regions by their distance from the start.
template <typename R>
class RegionIndex {
 public:
  RegionIndex() = default;
  explicit RegionIndex(std::span<const R> regions) : regions_(regions) {
    if (regions.size() < 2) return;
    starts_.reserve(regions.size());
    std::uint64_t start = 0;
    for (const R& region : regions) {
      starts_.push_back(start);
      start += region.bytes;
    }
  }

  RegionCursor<R> at(std::uint64_t offset) const {
    if (starts_.empty()) return RegionCursor<R>(regions_, static_cast<std::size_t>(offset));
    const auto next = std::upper_bound(starts_.begin(), starts_.end(), offset);
    const std::size_t region = static_cast<std::size_t>(next - starts_.begin()) - 1;
    return RegionCursor<R>(regions_.subspan(region), static_cast<std::size_t>(offset - starts_[region]));
  }

 private:
  std::span<const R> regions_;
  std::vector<std::uint64_t> starts_;  // of each region; empty when there is only one
};

// Copies bytes to the cursor and moves it on; past the cache for messages that would not fit it.
inline void write(RegionCursor<Region>& to, base::ByteView bytes, bool past_cache = false) {
  while (!bytes.empty()) {
    const base::ByteSpan piece = to.piece(bytes.size());
    if (past_cache)
      base::stream_copy(piece.data(), bytes.data(), piece.size());
    else
      std::memcpy(piece.data(), bytes.data(), piece.size());
    to.advance(piece.size());
    bytes = bytes.subspan(piece.size());
  }
}

// Copies from the cursor until `bytes` is full, and moves it on.
inline void read(RegionCursor<ConstRegion>& from, base::ByteSpan bytes) {
  while (!bytes.empty()) {
    const base::ByteView piece = from.piece(bytes.size());
    std::memcpy(bytes.data(), piece.data(), piece.size());
    from.advance(piece.size());
    bytes = bytes.subspan(piece.size());
  }
}

// The next bytes in one piece, and the cursor behind them: where they are, or copied together when regions are small.
inline base::ByteView gather(RegionCursor<ConstRegion>& from, std::size_t bytes, base::ByteSpan scratch) {
  const base::ByteView piece = from.piece(bytes);
  if (piece.size() == bytes) {
    from.advance(bytes);
    return piece;
  }
  read(from, scratch.first(bytes));
  return scratch.first(bytes);
}

}  // namespace nexar::mesh
