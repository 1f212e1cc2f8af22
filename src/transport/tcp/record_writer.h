// The sending half of a lane without its socket: frames become records, in a buffer that is small enough to stay in the cache between the
// cipher and the kernel.
//
// A sealed payload is read once, from the caller's memory into the buffer. A plain one is not copied at all if the socket takes it at
// once; what the socket leaves is copied before the caller gets its memory back.
//
// Thread: engine. Owned by its lane.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "transport/tcp/record_keys.h"
#include "wire/header.h"

namespace nexar::transport::tcp {

class RecordWriter {
 public:
  // Frames that are sealed before the kernel is called: one pays for a call twice as often, and four no longer fit beside what the
  // kernel touches.
  static constexpr std::size_t kFramesPerWrite = 2;

  RecordWriter(RecordKeys keys, bool plain);

  // Bytes in clear, before any record.
  void add_clear(base::ByteView bytes);

  // Whether a frame of any size can be added: on a plain lane when everything before is written, otherwise when there is room.
  bool has_room() const;

  // False when the lane has used all its numbers. On a plain lane `payload` is referred to until settle().
  [[nodiscard]] bool add(const wire::Header& header, base::ByteView payload);

  // What is to be written next, in order; both empty when nothing is.
  std::array<base::ByteView, 2> unsent() const;
  bool empty() const { return begin_ == end_ && payload_.empty(); }
  void sent(std::size_t bytes);

  // Copies what still lies in the caller's memory.
  void settle();

  std::uint64_t records() const { return keys_.number(); }

 private:
  base::ByteSpan take(std::size_t bytes);

  RecordKeys keys_;
  const bool plain_;
  const std::unique_ptr<std::byte[]> memory_;  // not touched before it is used: an idle lane has none of it
  const base::ByteSpan buffer_;
  std::size_t begin_ = 0;  // of what is not yet written
  std::size_t end_ = 0;
  base::ByteView payload_;  // plain: follows the buffer, in the caller's memory
};

}  // namespace nexar::transport::tcp
