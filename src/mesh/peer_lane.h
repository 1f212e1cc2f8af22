// One life of one TCP lane to a peer, from the offer to its end.
//
// Thread: engine. Owned by Lanes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/time.h"
#include "mesh/bulk_way.h"
#include "mesh/incoming_transfers.h"
#include "nexar/ids.h"
#include "nexar/result.h"
#include "transport/link.h"
#include "transport/tcp/lane.h"
#include "wire/header.h"
#include "wire/lane_messages.h"

namespace nexar::mesh {

class PeerLane final : private transport::tcp::LaneHandler {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual bool is_drained(const wire::Header& header) = 0;  // nobody wants this frame any more
    virtual void on_lane_busy() = 0;                          // it has something to send
    virtual void on_lane_open(PeerLane& lane) = 0;
    virtual void on_lane_ended(PeerLane& lane, const Error& error) = 0;  // by itself; may destroy it
  };

  PeerLane(const wire::LaneName& name, WayNumber way, Epoch epoch, base::ByteSpan scratch, IncomingTransfers& incoming, Owner& owner);

  const wire::LaneName& name() const { return name_; }
  WayNumber number() const { return number_; }
  BulkWay& way() { return way_; }
  bool is_open() const { return open_; }

  // Its connection, which has been opened for handler() or has arrived.
  transport::tcp::LaneHandler& handler() { return *this; }
  void use(std::unique_ptr<transport::tcp::Lane> lane) { lane_ = std::move(lane); }
  void start(std::unique_ptr<transport::tcp::Lane> lane);

  // Takes what has come; it may be gone afterwards.
  void drain() { lane_->drain(); }

  void fit_congestion_control(base::Duration shortest_round_trip) { lane_->fit_congestion_control(shortest_round_trip); }
  std::string congestion_control() const { return lane_->congestion_control(); }

  transport::LaneCounters counters() const;

  // Whether something was sent, or waits to be, that the peer has not got; and how often check() has found such a lane where it was the
  // time before, while the peer answered. Who is in the path may have acknowledged what the peer never gets: its watermarks count too.
  bool is_waiting() const;
  int check(bool peer_answered);

 private:
  void on_ready() override;
  Result<transport::Sink*> on_frame(const wire::Header& header) override;
  Result<void> on_frame_end(const wire::Header& header) override { return arrivals_.on_frame_end(header); }
  void on_end(const transport::LinkEnd& end) override { owner_.on_lane_ended(*this, end.error); }
  void wake();

  const wire::LaneName name_;
  const WayNumber number_;
  Owner& owner_;
  BulkWay way_;
  IncomingTransfers::Arrivals arrivals_;
  bool open_ = false;
  std::uint64_t progress_ = 0;  // bytes that have left the kernel, and watermarks
  int stalled_ = 0;
  std::unique_ptr<transport::tcp::Lane> lane_;  // last: it calls the others
};

}  // namespace nexar::mesh
