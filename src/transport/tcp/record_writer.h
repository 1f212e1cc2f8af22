// The sending half of a lane without its socket: frames become records, in a buffer that is small enough to stay in the cache between the
// cipher and the kernel.
//
// A sealed payload is read once, from the caller's memory into the buffer. A plain one that stays is not copied at all if the socket takes
// it at once; what the socket leaves is copied before the caller gets its memory back.
//
// Thread: engine. Owned by its lane.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "transport/tcp/record_keys.h"
#include "wire/header.h"
#include "wire/limits.h"

namespace nexar::transport::tcp {

class RecordWriter {
 public:
  // Frames that are sealed before the kernel is called: with two a MiB takes a sixth more time, and with eight they no longer fit a cache
  // of the second level beside what the kernel touches.
  static constexpr std::size_t kFramesPerWrite = 4;

  // Of a plain lane, whose frames are larger.
  static constexpr std::size_t kPlainFramesPerWrite = 2;

  // A header and a payload of each frame, and the rest of what was settled.
  static constexpr std::size_t kPiecesMax = 2 * kFramesPerWrite + 1;

  RecordWriter(RecordKeys keys, bool plain);

  // Bytes in clear, before any record.
  void add_clear(base::ByteView bytes);

  // What a frame carries at most: where nothing is sealed, as much as one may.
  std::size_t payload_max() const { return plain_ ? wire::kBulkBytesMax : wire::kBulkBytes; }

  // Whether a frame of payload_max() can be added.
  bool has_room() const;

  // False when the lane has used all its numbers. On a plain lane a payload that stays is referred to until settle().
  [[nodiscard]] bool add(const wire::Header& header, base::ByteView payload, bool stays = false);

  // What is to be written next, in order: at most kPiecesMax.
  std::span<const base::ByteView> unsent() const { return std::span(pieces_).subspan(first_, count_); }
  bool empty() const { return count_ == 0; }
  void sent(std::size_t bytes);

  // Copies what still lies in the caller's memory.
  void settle();

  std::uint64_t records() const { return keys_.number(); }

 private:
  base::ByteSpan take(std::size_t bytes);
  void append(base::ByteView piece);
  bool is_ours(base::ByteView piece) const;

  RecordKeys keys_;
  const bool plain_;
  std::unique_ptr<std::byte[]> memory_;  // not touched before it is used: an idle lane has none of it
  std::unique_ptr<std::byte[]> spare_;   // plain: where settle() puts things together
  const std::size_t size_;               // of each
  std::size_t end_ = 0;                  // of what is used of the buffer
  std::array<base::ByteView, kPiecesMax> pieces_{};
  std::size_t first_ = 0;  // of the pieces that are not yet written
  std::size_t count_ = 0;
};

}  // namespace nexar::transport::tcp
