// The doorbells of a host's ranks, for whoever has written something for them.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "io/event_descriptor.h"
#include "transport/shm/segment.h"

namespace nexar::transport::shm {

// Rings only for those who have said in the segment that they sleep. Whoever rings has published before, sequentially consistent; who falls
// asleep says so before it looks once more: one of the two sees the other.
//
// Thread: any, but for add().
class Bells {
 public:
  explicit Bells(std::shared_ptr<const HostSegment> segment)
      : segment_(std::move(segment)), bells_(static_cast<std::size_t>(segment_->ranks())) {}
  ~Bells() {
    for (const auto& bell : bells_) delete bell.load();
  }
  Bells(const Bells&) = delete;
  Bells& operator=(const Bells&) = delete;

  // The doorbell of a local rank, once. Thread: engine.
  void add(int local, io::EventDescriptor bell) {
    bells_[static_cast<std::size_t>(local)].store(new io::EventDescriptor(std::move(bell)), std::memory_order_release);
  }

  // One ringing for all who write at the same time.
  void ring(int local) const {
    const io::EventDescriptor* bell = bells_[static_cast<std::size_t>(local)].load(std::memory_order_acquire);
    std::atomic<std::uint32_t>& asleep = segment_->rank(local).asleep;
    if (bell != nullptr && asleep.load(std::memory_order_seq_cst) != 0 && asleep.exchange(0, std::memory_order_seq_cst) != 0) bell->ring();
  }
  void ring_all() const {
    for (int local = 0; local < segment_->ranks(); ++local) ring(local);
  }

 private:
  std::shared_ptr<const HostSegment> segment_;
  std::vector<std::atomic<const io::EventDescriptor*>> bells_;  // by local rank; null where there is no link
};

}  // namespace nexar::transport::shm
