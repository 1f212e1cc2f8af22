// The lanes of a connection: frames become stream bytes and packets, and back.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "transport/quic/connection.h"
#include "transport/quic/endpoint.h"

namespace nexar::transport::quic {
namespace {

// RFC 9000 section 2.1: the two lowest bits of a stream's number say who opened it and whether it is unidirectional.
constexpr std::int64_t kUnidirectional = 2;
constexpr std::int64_t kOpenedByServer = 1;
constexpr std::int64_t kStreamStep = 4;

}  // namespace

// The handshake is done: one stream for each lane, in order, so that its number is known to both ends without a word.
int Connection::open_streams() {
  state_ = State::kOpen;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if (const int code = ngtcp2_conn_open_uni_stream(conn_, &outgoing_[lane].stream, nullptr); code != 0) {
      handler_error_ = Error(ErrorCode::kRefused, fmt::format("{} allows fewer lanes than {}", peer_.to_string(), kLanes));
      return NGTCP2_ERR_CALLBACK_FAILURE;
    }
    NEXAR_ASSERT(outgoing_[lane].stream / kStreamStep == static_cast<std::int64_t>(lane), "streams are numbered in the order of opening");
  }
  ready_due_ = true;
  endpoint_.handshake_done(*this);
  return 0;
}

// Comes before the first frame, whichever of the two is noticed first.
void Connection::announce_ready() {
  if (!std::exchange(ready_due_, false)) return;
  if (handler_ == nullptr) handler_ = endpoint_.handler_for(*this);
  if (handler_ == nullptr) return abort("nobody takes this link");
  handler_->on_ready();
}

Result<void> Connection::receive_stream(std::int64_t stream, base::ByteView bytes) {
  const bool from_server = (stream & kOpenedByServer) != 0;
  const std::size_t lane = static_cast<std::size_t>(stream / kStreamStep);
  if ((stream & kUnidirectional) == 0 || from_server == server_ || lane >= kLanes)
    return Error(ErrorCode::kRefused, fmt::format("{} sent data on stream {}, which is no lane", peer_.to_string(), stream));
  announce_ready();
  if (lane == static_cast<std::size_t>(wire::Lane::kBulk))
    unanswered_bytes_ += kUnansweredBytesMax;  // it goes on, and its sender waits for every acknowledgement
  else
    brought_ = true;
  counters_[lane].bytes_received += bytes.size();
  return incoming_[lane].parse(bytes);
}

Result<void> Connection::IncomingLane::parse(base::ByteView bytes) { return parser_.feed(bytes, *this); }

Result<void> Connection::IncomingLane::on_frame(const wire::Header& header) {
  ++connection_.counters_[static_cast<std::size_t>(header.lane())].frames_received;
  header_ = header;
  sink_ = nullptr;
  if (connection_.handler_ == nullptr) return {};  // the link is about to end
  Result<Sink*> sink = connection_.handler_->on_frame(header);
  if (!sink) return std::move(sink).error();
  sink_ = *sink;
  return {};
}

Result<void> Connection::IncomingLane::on_payload(base::ByteView piece, bool last) {
  if (sink_ != nullptr && !piece.empty()) sink_->take(piece);
  if (!last || connection_.handler_ == nullptr) return {};
  return connection_.handler_->on_frame_end(header_);
}

bool Connection::send(const wire::Header& header, base::ByteView payload) {
  OutgoingLane& lane = outgoing_[static_cast<std::size_t>(header.lane())];
  NEXAR_ASSERT(header.length == payload.size(), "a header says how much follows");
  if (state_ != State::kOpen && (state_ != State::kDraining || header.lane() != wire::Lane::kControl)) return false;
  if (lane.queue.room() < wire::kHeaderBytes + payload.size()) {
    lane.owner_waits = true;
    return false;
  }
  queue_frame(lane, header, payload);
  endpoint_.mark_dirty(*this);
  return true;
}

void Connection::queue_frame(OutgoingLane& lane, const wire::Header& header, base::ByteView payload) {
  std::array<std::byte, wire::kHeaderBytes> bytes;
  wire::encode(header, bytes);
  lane.queue.append(bytes);
  lane.queue.append(payload);
  LaneCounters& counters = counters_[static_cast<std::size_t>(header.lane())];
  ++counters.frames_sent;
  counters.bytes_sent += bytes.size() + payload.size();
}

void Connection::set_bulk_source(BulkSource* source) {
  bulk_ = source;
  if (source != nullptr) bulk_ready();
}

void Connection::bulk_ready() {
  bulk_waits_ = false;
  endpoint_.mark_dirty(*this);
}

// Copies bulk frames only as packets need them, so that the bytes are still in the cache when they are encrypted.
void Connection::refill_bulk() {
  OutgoingLane& lane = outgoing_[static_cast<std::size_t>(wire::Lane::kBulk)];
  while (bulk_ != nullptr && !bulk_waits_ && lane.queue.unsent_bytes() < packet_bytes() &&
         lane.queue.room() >= wire::kHeaderBytes + wire::kBulkBytes) {
    const std::optional<BulkSource::Frame> frame = bulk_->next(wire::kBulkBytes);
    if (!frame) {
      bulk_waits_ = true;
      return;
    }
    queue_frame(lane, frame->header, frame->payload);
  }
}

void Connection::acknowledged(std::int64_t stream, std::uint64_t offset) {
  OutgoingLane& lane = outgoing_[static_cast<std::size_t>(stream / kStreamStep)];
  lane.queue.acknowledge(offset);
  progress_ = true;
  room_due_ = room_due_ || lane.owner_waits;
}

void Connection::announce_room() {
  room_due_ = false;
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    // Half of the lane, so that a waiting owner is woken for several frames and not for each.
    if (outgoing_[lane].owner_waits && outgoing_[lane].queue.room() >= kLaneBytesMax[lane] / 2) {
      outgoing_[lane].owner_waits = false;
      if (handler_ != nullptr) handler_->on_room(static_cast<wire::Lane>(lane));
    }
}

std::size_t Connection::write_packet(base::ByteSpan out, base::Time now) {
  if (state_ == State::kEnded || handler_error_) return 0;
  refill_bulk();
  if (most_urgent({}) == nullptr && keeps_acknowledgement(now)) {
    put_off_ = true;
    return 0;
  }
  const auto ts = static_cast<ngtcp2_tstamp>(now.time_since_epoch().count());
  auto* packet = reinterpret_cast<std::uint8_t*>(out.data());
  std::array<bool, kLanes> blocked{};
  for (;;) {
    OutgoingLane* lane = state_ == State::kHandshake ? nullptr : most_urgent(blocked);
    std::array<ngtcp2_vec, 2> pieces{};
    std::size_t count = 0;
    if (lane != nullptr)
      for (const base::ByteView piece : lane->queue.unsent())
        if (!piece.empty()) pieces[count++] = {reinterpret_cast<std::uint8_t*>(const_cast<std::byte*>(piece.data())), piece.size()};
    ngtcp2_ssize taken = -1;
    const ngtcp2_ssize written =
        ngtcp2_conn_writev_stream(conn_, nullptr, nullptr, packet, out.size(), &taken, lane != nullptr ? NGTCP2_WRITE_STREAM_FLAG_MORE : 0,
                                  lane != nullptr ? lane->stream : -1, pieces.data(), count, ts);
    if (taken > 0) {
      lane->queue.mark_sent(static_cast<std::size_t>(taken));
      packet_size_.sent(now);
    }
    if (written == NGTCP2_ERR_WRITE_MORE) continue;  // there is room in the packet for another lane
    if (written == NGTCP2_ERR_STREAM_DATA_BLOCKED) {
      blocked[static_cast<std::size_t>(lane->stream / kStreamStep)] = true;
      continue;
    }
    if (written < 0) {
      fail(static_cast<int>(written), now);
      return 0;
    }
    if (written > 0) answered(now);
    return static_cast<std::size_t>(written);
  }
}

// A packet has been written, and took along the acknowledgement of all that had come a moment before. What came since may still wait for
// one; whether anything did is known only where nothing else expires soon.
void Connection::answered(base::Time now) {
  unanswered_packets_ = 0;
  unanswered_bytes_ = 0;
  put_off_ = false;
  const auto kept_until = static_cast<ngtcp2_tstamp>((now + kAcknowledgementWaits).time_since_epoch().count());
  if (ngtcp2_conn_get_expiry(conn_) > kept_until)
    unanswered_since_.reset();
  else if (unanswered_since_)
    unanswered_since_ = now;
}

// Lanes are in the order of their urgency.
Connection::OutgoingLane* Connection::most_urgent(const std::array<bool, kLanes>& blocked) {
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    if (!blocked[lane] && outgoing_[lane].queue.has_unsent() && !is_held_back(outgoing_[lane])) return &outgoing_[lane];
  return nullptr;
}

// Less than a packet of bulk waits while the lane is full and its source has more: a short packet would cost as much as a full one. What is
// in flight is nearly the whole lane, so room comes by itself, and the source fills the packet then.
bool Connection::is_held_back(const OutgoingLane& lane) const {
  return &lane == &outgoing_[static_cast<std::size_t>(wire::Lane::kBulk)] && bulk_ != nullptr && !bulk_waits_ &&
         lane.queue.unsent_bytes() < packet_bytes();
}

bool Connection::has_in_flight() const {
  return std::any_of(outgoing_.begin(), outgoing_.end(), [](const OutgoingLane& lane) { return lane.queue.has_in_flight(); });
}

}  // namespace nexar::transport::quic
