#include "transport/quic/send_queue.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"

namespace nexar::transport::quic {

Block BlockPool::take() {
  if (kept_.empty()) return Block(new std::byte[block_bytes_]);
  Block block = std::move(kept_.back());
  kept_.pop_back();
  return block;
}

void BlockPool::give(Block block) {
  if (kept_.size() < kept_max_) kept_.push_back(std::move(block));
}

SendQueue::~SendQueue() {
  for (Block& block : blocks_) pool_.give(std::move(block));
}

std::byte* SendQueue::at(std::uint64_t offset) const {
  const std::uint64_t distance = offset - base_;
  return blocks_[distance / pool_.block_bytes()].get() + distance % pool_.block_bytes();
}

void SendQueue::append(base::ByteView bytes) {
  NEXAR_ASSERT(bytes.size() <= room(), "whoever appends has asked for room");
  while (!bytes.empty()) {
    if (queued_ - base_ == blocks_.size() * pool_.block_bytes()) blocks_.push_back(pool_.take());
    const std::size_t left_in_block = pool_.block_bytes() - static_cast<std::size_t>((queued_ - base_) % pool_.block_bytes());
    const std::size_t n = std::min(bytes.size(), left_in_block);
    std::memcpy(at(queued_), bytes.data(), n);
    queued_ += n;
    bytes = bytes.subspan(n);
  }
}

std::array<base::ByteView, 2> SendQueue::unsent() const {
  if (!has_unsent()) return {};
  const std::size_t all = static_cast<std::size_t>(queued_ - sent_);
  const std::size_t left_in_block = pool_.block_bytes() - static_cast<std::size_t>((sent_ - base_) % pool_.block_bytes());
  const std::size_t first = std::min(all, left_in_block);
  const std::size_t second = std::min(all - first, pool_.block_bytes());
  return {base::ByteView(at(sent_), first), second == 0 ? base::ByteView() : base::ByteView(at(sent_ + first), second)};
}

void SendQueue::mark_sent(std::size_t bytes) {
  NEXAR_ASSERT(bytes <= queued_ - sent_, "only what was queued is sent");
  sent_ += bytes;
}

void SendQueue::acknowledge(std::uint64_t offset) {
  NEXAR_ASSERT(offset <= sent_, "only what was sent is acknowledged");
  acknowledged_ = std::max(acknowledged_, offset);
  while (!blocks_.empty() && acknowledged_ - base_ >= pool_.block_bytes()) {
    pool_.give(std::move(blocks_.front()));
    blocks_.pop_front();
    base_ += pool_.block_bytes();
  }
  if (acknowledged_ == queued_ && !blocks_.empty()) {  // nothing in flight: keep nothing
    pool_.give(std::move(blocks_.front()));
    blocks_.pop_front();
    base_ = queued_;
  }
}

}  // namespace nexar::transport::quic
