#include "mesh/peer_lane.h"

#include <utility>

namespace nexar::mesh {

PeerLane::PeerLane(const wire::LaneName& name, WayNumber way, Epoch epoch, base::ByteSpan scratch, IncomingTransfers& incoming,
                   Owner& owner)
    : name_(name), number_(way), owner_(owner), way_(epoch, scratch, [this] { wake(); }), arrivals_(incoming, way) {}

void PeerLane::start(std::unique_ptr<transport::tcp::Lane> lane) {
  lane_ = std::move(lane);
  lane_->start(*this);
}

void PeerLane::wake() {
  lane_->bulk_ready();
  owner_.on_lane_busy();
}

void PeerLane::on_ready() {
  open_ = true;
  lane_->set_bulk_source(&way_);
  owner_.on_lane_open(*this);
}

Result<transport::Sink*> PeerLane::on_frame(const wire::Header& header) {
  if (owner_.is_drained(header)) return static_cast<transport::Sink*>(nullptr);
  return arrivals_.on_frame(header);
}

const transport::LaneCounters PeerLane::counters() const { return lane_ == nullptr ? transport::LaneCounters{} : lane_->counters().frames; }

bool PeerLane::is_waiting() const { return open_ && (way_.unfinished() > 0 || lane_->counters().bytes_in_kernel > 0); }

int PeerLane::check(bool peer_answered) {
  const transport::tcp::TcpLaneCounters counters = lane_->counters();
  const std::uint64_t progress = counters.frames.bytes_sent - counters.bytes_in_kernel + way_.watermarks();
  if (std::exchange(progress_, progress) != progress)
    stalled_ = 0;
  else if (peer_answered)
    ++stalled_;
  return stalled_;
}

}  // namespace nexar::mesh
