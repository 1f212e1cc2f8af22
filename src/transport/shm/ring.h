// A ring of bytes in shared memory: one lane of a link, in one direction.
//
//       head                 tail
//        |---- to be read ----|
//   [....................................]   capacity, a power of two
//
// Both positions only grow. Each is written by one end, which keeps its own in private memory and never reads it back; the other end's is
// copied once and believed only if it is possible.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/bytes.h"

namespace nexar::transport::shm {

using Position = std::atomic<std::uint64_t>;
static_assert(Position::is_always_lock_free, "positions are shared between processes");

// The end that writes. Thread: one at a time.
class RingWriter {
 public:
  RingWriter(Position& tail, const Position& head, base::ByteSpan bytes) : tail_(&tail), head_(&head), bytes_(bytes) {}

  std::size_t capacity() const { return bytes_.size(); }

  // Bytes that may be written. 0 as well when the reader's position is impossible: see is_broken().
  std::size_t room() {
    const std::uint64_t head = head_->load(std::memory_order_acquire);
    if (head < seen_ || head > written_) broken_ = true;
    if (broken_) return 0;
    seen_ = head;
    return bytes_.size() - static_cast<std::size_t>(written_ - seen_);
  }

  // Copies bytes, of which there are not more than room(); nobody sees them yet.
  void write(base::ByteView bytes) {
    const std::size_t at = static_cast<std::size_t>(written_) & (bytes_.size() - 1);
    const std::size_t first = std::min(bytes.size(), bytes_.size() - at);
    if (first > 0) std::memcpy(bytes_.data() + at, bytes.data(), first);
    if (bytes.size() > first) std::memcpy(bytes_.data(), bytes.data() + first, bytes.size() - first);
    written_ += bytes.size();
  }

  // Shows what was written. Sequentially consistent: whoever falls asleep afterwards sees it, or is seen asleep.
  void publish() {
    if (shown_ != written_) tail_->store(shown_ = written_, std::memory_order_seq_cst);
  }

  // Whether the reader has come further than when room() was asked last, or has everything.
  bool has_moved() const { return head_->load(std::memory_order_seq_cst) != seen_; }
  bool is_read() {
    room();
    return !broken_ && seen_ == written_;
  }

  bool is_broken() const { return broken_; }

 private:
  Position* tail_;
  const Position* head_;
  base::ByteSpan bytes_;
  std::uint64_t written_ = 0;
  std::uint64_t shown_ = 0;
  std::uint64_t seen_ = 0;  // the reader's position when it was looked at last
  bool broken_ = false;
};

// The end that reads. Thread: one at a time.
class RingReader {
 public:
  RingReader(const Position& tail, Position& head, base::ByteSpan bytes) : tail_(&tail), head_(&head), bytes_(bytes) {}

  // Bytes that can be read. 0 as well when the writer's position is impossible: see is_broken().
  std::size_t available() {
    const std::uint64_t tail = tail_->load(std::memory_order_seq_cst);
    if (tail - read_ > bytes_.size()) broken_ = true;
    return broken_ ? 0 : static_cast<std::size_t>(tail - read_);
  }

  // The next bytes in place, in one piece: at most `most`, of which so many are available, and perhaps fewer where the ring ends. The
  // writer can change them while they are looked at: what is checked is copied first.
  base::ByteView peek(std::size_t most) const {
    const std::size_t at = static_cast<std::size_t>(read_) & (bytes_.size() - 1);
    return bytes_.subspan(at, std::min(most, bytes_.size() - at));
  }

  // Gives read bytes back to the writer, when give_back() is called.
  void skip(std::size_t bytes) { read_ += bytes; }
  void give_back() { head_->store(read_, std::memory_order_seq_cst); }

  // Copies bytes out, of which so many are available.
  void copy(base::ByteSpan out) {
    while (!out.empty()) {
      const base::ByteView piece = peek(out.size());
      std::memcpy(out.data(), piece.data(), piece.size());
      skip(piece.size());
      out = out.subspan(piece.size());
    }
  }

  bool is_broken() const { return broken_; }

 private:
  const Position* tail_;
  Position* head_;
  base::ByteSpan bytes_;
  std::uint64_t read_ = 0;
  bool broken_ = false;
};

}  // namespace nexar::transport::shm
