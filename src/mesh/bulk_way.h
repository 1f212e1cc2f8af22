// One way for bulk frames to a peer: its link, or a TCP lane. Stripes that were given to it take turns, frame by frame.
//
// Thread: engine. Owned by whoever owns the link or the lane.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "base/bytes.h"
#include "mesh/message.h"
#include "mesh/regions.h"
#include "nexar/ids.h"
#include "transport/link.h"
#include "wire/transfer_messages.h"

namespace nexar::mesh {

class BulkWay;

// What one stripe of an outgoing transfer still has to send.
struct OutgoingStripe {
  std::uint64_t transfer = 0;
  GroupId group = 0;
  std::uint16_t number = 0;
  std::uint16_t generation = 0;
  wire::ByteRange range{};
  std::uint64_t position = 0;  // of the next frame, from the transfer's start
  RegionCursor<ConstRegion> from{};
  BulkWay* way = nullptr;  // that its bytes went by in this generation; null while the receiver has not said where to go on
  bool queued = false;     // at the way, with bytes left
  bool complete = false;   // the receiver has it all
};

class BulkWay final : public transport::BulkSource {
 public:
  // `scratch` has kBulkBytesMax and is of no meaning between two calls. `wake` tells the link or lane that there are frames again.
  BulkWay(Epoch epoch, base::ByteSpan scratch, std::function<void()> wake) : epoch_(epoch), scratch_(scratch), wake_(std::move(wake)) {}

  void add(OutgoingStripe& stripe);
  void remove(OutgoingStripe& stripe);

  std::uint64_t waiting_bytes() const { return waiting_bytes_; }

  // Stripes that were given to it and that the receiver has not got whole; and what the receiver has said of them.
  std::size_t unfinished() const { return unfinished_; }
  std::uint64_t watermarks() const { return watermarks_; }
  void on_watermark() { ++watermarks_; }

  // transport::BulkSource
  std::optional<Frame> next(std::size_t bytes_max) override;
  bool has_next() const override { return !stripes_.empty(); }

 private:
  const Epoch epoch_;
  const base::ByteSpan scratch_;
  const std::function<void()> wake_;
  std::deque<OutgoingStripe*> stripes_;  // the front has the next frame; at most kStripesMax for each transfer that was granted
  std::uint64_t waiting_bytes_ = 0;
  std::size_t unfinished_ = 0;
  std::uint64_t watermarks_ = 0;
};

}  // namespace nexar::mesh
