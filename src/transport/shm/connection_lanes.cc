// The lanes of a connection: frames go into rings, and come out of them.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "transport/shm/connection.h"
#include "transport/shm/endpoint.h"

namespace nexar::transport::shm {
namespace {

// Frames that are sent in one turn are shown together, as the other end then takes them: a position that both ends touch for each of them
// would travel between their cores as often. So many at most, so that it begins in time.
constexpr std::size_t kFramesShownTogether = 8;

// Below this a copy through the ring costs less than a call of the kernel.
constexpr std::size_t kReferredBytesMin = 16u << 10;

}  // namespace

bool Connection::send(const wire::Header& header, base::ByteView payload) {
  NEXAR_ASSERT(header.length == payload.size(), "a header says how much follows");
  const std::size_t index = static_cast<std::size_t>(header.lane());
  if (state_ != State::kOpen && (state_ != State::kDraining || header.lane() != wire::Lane::kControl)) return false;
  OutgoingLane& lane = outgoing_[index];
  if (lane.backlog_bytes() + wire::kHeaderBytes + payload.size() > kBacklogBytesMax[index]) {
    lane.owner_waits = true;
    return false;
  }
  put_frame(header, nullptr, payload);
  if (++unshown_ >= kFramesShownTogether) show();
  if (!std::exchange(flush_due_, true)) endpoint_.flush_later(*this);
  return true;
}

void Connection::flush() {
  flush_due_ = false;
  if (unshown_ > 0 && state_ != State::kEnded) show();
}

void Connection::show() {
  unshown_ = 0;
  for (OutgoingLane& lane : outgoing_) lane.ring.publish();
  tell_waiting();
  endpoint_.bells()->ring(ends_.there);
}

// Into the ring as far as there is room, and the rest behind it.
void Connection::put(OutgoingLane& lane, base::ByteView start, base::ByteView payload) {
  std::size_t room = lane.backlog_bytes() == 0 ? lane.ring.room() : 0;
  for (base::ByteView bytes : {start, payload}) {
    const base::ByteView fits = bytes.first(std::min(bytes.size(), room));
    lane.ring.write(fits);
    room -= fits.size();
    if (fits.size() < bytes.size())
      lane.backlog.insert(lane.backlog.end(), bytes.begin() + static_cast<std::ptrdiff_t>(fits.size()), bytes.end());
  }
}

void Connection::put_frame(const wire::Header& header, const Reference* reference, base::ByteView payload) {
  const std::size_t index = static_cast<std::size_t>(header.lane());
  OutgoingLane& lane = outgoing_[index];
  std::array<std::byte, wire::kHeaderBytes + kReferenceBytes> bytes{};
  wire::encode(header, std::span(bytes).first<wire::kHeaderBytes>());
  std::size_t size = wire::kHeaderBytes;
  if (index == kBulk) {
    const Reference none;
    const Reference& described = reference != nullptr ? *reference : none;
    base::store_le(bytes.data() + size, described.address);
    base::store_le(bytes.data() + size + 8, described.slot);
    base::store_le(bytes.data() + size + 16, described.lease);
    size += kReferenceBytes;
  }
  put(lane, base::ByteView(bytes).first(size), reference == nullptr || reference->address == 0 ? payload : base::ByteView());
  ++counters_[index].frames_sent;
  counters_[index].bytes_sent += wire::kHeaderBytes + header.length;
}

bool Connection::pump(OutgoingLane& lane) {
  if (lane.backlog_bytes() == 0) return false;
  const base::ByteView waiting = base::ByteView(lane.backlog).subspan(lane.backlog_at);
  const base::ByteView fits = waiting.first(std::min(waiting.size(), lane.ring.room()));
  if (fits.empty()) return false;
  lane.ring.write(fits);
  lane.ring.publish();
  lane.backlog_at += fits.size();
  if (lane.backlog_bytes() == 0) {
    lane.backlog.clear();
    lane.backlog_at = 0;
  }
  endpoint_.bells()->ring(ends_.there);
  return true;
}

void Connection::set_bulk_source(BulkSource* source) {
  bulk_ = source;
  if (source != nullptr) bulk_ready();
}

// Frames are asked for only when the ring can take most of one, so that they are copied once.
bool Connection::refill_bulk() {
  OutgoingLane& lane = outgoing_[kBulk];
  const std::size_t enough = std::min(lane.ring.capacity() / 2, wire::kHeaderBytes + kReferenceBytes + wire::kBulkBytes);
  bool moved = false;
  while (bulk_ != nullptr && !bulk_waits_ && state_ != State::kEnded && lane.backlog_bytes() == 0 && lane.ring.room() >= enough) {
    const std::optional<BulkSource::Frame> frame = bulk_->next(wire::kBulkBytes);
    if (!frame) {
      bulk_waits_ = true;
      break;
    }
    const Reference reference = refer(*frame);
    put_frame(frame->header, &reference, frame->payload);
    lane.ring.publish();
    endpoint_.bells()->ring(ends_.there);
    moved = true;
  }
  return moved;
}

// Where the peer finds the bytes of a frame, unless they have to be copied; and the lease of its transfer.
Connection::Reference Connection::refer(const BulkSource::Frame& frame) {
  auto found = referred_.find(frame.header.id);
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(frame.payload.data()));
  const bool described = ends_.peer_reads && frame.stays && frame.payload.size() >= kReferredBytesMin && endpoint_.can_be_read(address);
  if (described && found == referred_.end() && !free_slots_.empty()) {
    found = referred_.emplace(frame.header.id, free_slots_.back()).first;
    free_slots_.pop_back();
  }
  if (found == referred_.end()) return {};
  return Reference{described ? address : 0, found->second, leases_[found->second]};
}

// What the peer reads from here on is not what was meant: it sees that the lease is another one, and drops it.
void Connection::let_go(std::uint64_t transfer) {
  const auto found = referred_.find(transfer);
  if (found == referred_.end()) return;
  const std::size_t slot = found->second;
  out_lines_.leases[slot].store(++leases_[slot], std::memory_order_seq_cst);
  referred_.erase(found);
  free_slots_.push_back(slot);
}

// The peer wakes us when it has read something only if it knows that we wait for that.
void Connection::tell_waiting() {
  const bool backlog = std::any_of(outgoing_.begin(), outgoing_.end(), [](const OutgoingLane& lane) { return lane.backlog_bytes() > 0; });
  const bool waits = backlog || (bulk_ != nullptr && !bulk_waits_) || state_ == State::kDraining || state_ == State::kFarewell;
  if (waits == told_waiting_) return;
  told_waiting_ = waits;
  out_lines_.writer_waits.store(waits ? 1 : 0, std::memory_order_seq_cst);
}

bool Connection::is_all_read() {
  return std::all_of(outgoing_.begin(), outgoing_.end(),
                     [](OutgoingLane& lane) { return lane.backlog_bytes() == 0 && lane.ring.is_read(); });
}

bool Connection::read_lane(std::size_t index, std::size_t most) {
  bool read = false;
  if (auto taken = read_frames(index, most, read); !taken && !fault_) fault_ = {LinkEnd::Kind::kProtocol, std::move(taken).error()};
  return read;
}

Result<void> Connection::read_frames(std::size_t index, std::size_t most, bool& read) {
  IncomingLane& lane = incoming_[index];
  const std::size_t start = wire::kHeaderBytes + (index == kBulk ? kReferenceBytes : 0);
  std::size_t available = lane.ring.available();
  if (lane.ring.is_broken())
    return Error(ErrorCode::kRefused, fmt::format("{} says that it has written more than there is room for", who()));
  std::size_t taken = 0;
  while (taken < most && !fault_) {
    if (lane.left == 0) {
      if (available < start) break;
      const std::uint64_t before = counters_[index].bytes_received;
      if (auto begun = begin_frame(index); !begun) return begun;
      available -= start;
      taken += static_cast<std::size_t>(counters_[index].bytes_received - before);
    } else {
      const base::ByteView piece = lane.ring.peek(std::min<std::size_t>(available, lane.left));
      if (piece.empty()) break;
      if (lane.sink != nullptr) lane.sink->take(piece);
      lane.ring.skip(piece.size());
      lane.left -= static_cast<std::uint32_t>(piece.size());
      available -= piece.size();
      taken += piece.size();
      if (lane.left == 0)
        if (auto ended = end_frame(lane); !ended) return ended;
    }
    read = true;
    if (index == kBulk && lane.left == 0) lane.ring.give_back();  // so that the writer goes on meanwhile
  }
  if (!read) return {};
  lane.ring.give_back();
  if (in_lines_.writer_waits.load(std::memory_order_seq_cst) != 0) endpoint_.bells()->ring(ends_.there);
  return {};
}

// The header is copied before it is looked at: the peer could change it in between.
Result<void> Connection::begin_frame(std::size_t index) {
  IncomingLane& lane = incoming_[index];
  std::array<std::byte, wire::kHeaderBytes + kReferenceBytes> bytes;
  lane.ring.copy(base::ByteSpan(bytes).first(wire::kHeaderBytes + (index == kBulk ? kReferenceBytes : 0)));
  const Result<wire::Header> header = wire::decode_header(bytes);
  if (!header) return header.error();
  if (static_cast<std::size_t>(header->lane()) != index)
    return Error(ErrorCode::kRefused, fmt::format("a {} frame came on the {} lane", wire::to_string(header->type),
                                                  wire::to_string(static_cast<wire::Lane>(index))));
  lane.header = *header;
  counters_[index].bytes_received += wire::kHeaderBytes + header->length;
  Reference reference;
  if (index == kBulk) {
    reference.address = base::load_le<std::uint64_t>(bytes.data() + wire::kHeaderBytes);
    reference.slot = base::load_le<std::uint64_t>(bytes.data() + wire::kHeaderBytes + 8);
    reference.lease = base::load_le<std::uint64_t>(bytes.data() + wire::kHeaderBytes + 16);
    if (reference.slot > kLeases || (reference.slot == kLeases && reference.address != 0))
      return Error(ErrorCode::kRefused, fmt::format("{} names a lease that does not exist", who()));
    if (reference.slot < kLeases && !is_current(reference)) {  // taken back before we came
      lane.dropped = reference.address == 0 && header->length > 0;
      lane.sink = nullptr;
      lane.left = lane.dropped ? header->length : 0;
      return {};
    }
  }
  ++counters_[index].frames_received;
  Result<Sink*> sink = handler_->on_frame(*header);
  if (!sink) return std::move(sink).error();
  lane.sink = *sink;
  if (reference.address != 0) return fetch(lane, reference);
  lane.left = header->length;
  return lane.left == 0 ? end_frame(lane) : Result<void>();
}

Result<void> Connection::end_frame(IncomingLane& lane) {
  return std::exchange(lane.dropped, false) ? Result<void>() : handler_->on_frame_end(lane.header);
}

bool Connection::is_current(const Reference& reference) const {
  return in_lines_.leases[reference.slot].load(std::memory_order_seq_cst) == reference.lease;
}

// Takes the bytes of a described frame from the peer's memory. If the peer took them back meanwhile they are not what was sent: the frame
// is dropped, and those of the same transfer that follow it, and the peer's withdrawal is on its way.
Result<void> Connection::fetch(IncomingLane& lane, const Reference& reference) {
  if (!ends_.reads) return Error(ErrorCode::kRefused, fmt::format("{} describes memory that cannot be read from here", who()));
  std::array<base::ByteSpan, io::ProcessMemory::kRegionsMax> regions;
  std::size_t count = lane.sink != nullptr ? lane.sink->place(lane.header.length, regions) : 0;
  const bool placed = count > 0;
  const base::ByteSpan scratch = endpoint_.scratch().first(lane.header.length);
  if (!placed) regions[count++] = scratch;
  const bool done = memory_.read(reference.address, std::span(regions).first(count));
  if (!is_current(reference)) return {};
  if (!done) {
    fault_ = {LinkEnd::Kind::kBroken, Error(ErrorCode::kPeerLost, fmt::format("the memory of {} cannot be read any more", who()))};
    return {};
  }
  if (placed)
    lane.sink->placed(lane.header.length);
  else if (lane.sink != nullptr)
    lane.sink->take(scratch);
  return end_frame(lane);
}

}  // namespace nexar::transport::shm
