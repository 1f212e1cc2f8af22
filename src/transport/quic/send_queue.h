// The bytes of one stream, from when they are queued until the peer has them.
//
// ngtcp2 keeps pointers to what it may have to send again, long after the operation that it belongs to is over. So it is given bytes in
// blocks of the link's own, which neither move nor change until they are acknowledged. Blocks come from a pool shared by all connections of
// an endpoint: a connection with nothing in flight holds none.
//
//     acknowledged         sent            queued         (offsets in the stream)
//          |---- in flight ----|---- to send ----|
//   [ block ][ block ][ block ][ block ]
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/bytes.h"

namespace nexar::transport::quic {

using Block = std::unique_ptr<std::byte[]>;

// Blocks of one size, kept for reuse up to a number.
class BlockPool {
 public:
  BlockPool(std::size_t block_bytes, std::size_t kept_max) : block_bytes_(block_bytes), kept_max_(kept_max) {}

  std::size_t block_bytes() const { return block_bytes_; }
  Block take();
  void give(Block block);

 private:
  std::size_t block_bytes_;
  std::size_t kept_max_;
  std::vector<Block> kept_;
};

class SendQueue {
 public:
  // Holds at most `bytes_max` bytes that are not acknowledged.
  SendQueue(BlockPool& pool, std::size_t bytes_max) : pool_(pool), bytes_max_(bytes_max) {}
  ~SendQueue();
  SendQueue(const SendQueue&) = delete;
  SendQueue& operator=(const SendQueue&) = delete;

  std::size_t room() const { return bytes_max_ - held(); }
  std::size_t held() const { return static_cast<std::size_t>(queued_ - acknowledged_); }
  bool has_unsent() const { return sent_ < queued_; }
  bool has_in_flight() const { return acknowledged_ < sent_; }
  std::size_t unsent_bytes() const { return static_cast<std::size_t>(queued_ - sent_); }

  // Copies the bytes to the end; they fit into room().
  void append(base::ByteView bytes);

  // The next bytes to send, in at most two pieces; empty pieces when there are none.
  std::array<base::ByteView, 2> unsent() const;
  void mark_sent(std::size_t bytes);

  // The peer has everything before `offset`.
  void acknowledge(std::uint64_t offset);

 private:
  std::byte* at(std::uint64_t offset) const;

  BlockPool& pool_;
  std::size_t bytes_max_;
  std::deque<Block> blocks_;
  std::uint64_t base_ = 0;  // offset of the first byte of the first block
  std::uint64_t acknowledged_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t queued_ = 0;
};

}  // namespace nexar::transport::quic
