// What a lane does when the loop calls it: reads and writes a bounded amount, and sleeps when there is nothing.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "transport/tcp/lane.h"

namespace nexar::transport::tcp {
namespace {

// A lane that found nothing so often in a spinning loop leaves it to epoll to look: some 30 microseconds, in which a peer that is in the
// middle of a transfer has sent its next frame.
constexpr int kIdlePollsMax = 64;

// A turn's bytes are payload, and headers and tags come on top of it.
constexpr std::size_t kOfHeadersAndTags = 256;
constexpr std::size_t kFrameOverhead = kSealedHeaderBytes + wire::kBulkBytes / wire::kRecordBytesMax * kRecordTagBytes;
static_assert(wire::kBulkBytes / kOfHeadersAndTags >= kFrameOverhead);
static_assert(RecordParser::kReadBytes >= RecordWriter::kFramesPerWrite * (wire::kBulkBytes + kFrameOverhead),
              "one read takes what one write brings");

// The kernel has taken so much without a pause: what limits this lane is not the line but the cores, which lose time when the two ways take
// turns. With turns four times as long a MiB both ways takes a tenth less time inside one host; on a line of 10 Gbit/s 64 MiB take 5 %
// more, because the line runs dry meanwhile.
constexpr std::uint64_t kFlows = 4u << 20;
constexpr std::size_t kLongTurn = 4;

// How long a line may take over what a lane sends from. Between the two it stays as it is.
constexpr base::Duration kLongQueue = std::chrono::milliseconds(2);
constexpr base::Duration kShortQueue = std::chrono::microseconds(500);

// More turns than two buffers of the largest size hold: a peer that goes on sending does not keep us.
constexpr int kDrainTurnsMax = 256;

}  // namespace

Result<void> Lane::watch() {
  Result<void> watched = loop_.watch(socket_->fd(), {.read = true, .write = write_blocked_}, *this);
  watched_ = watched.has_value();
  return watched;
}

void Lane::set_active(bool active) {
  idle_polls_ = 0;
  if (std::exchange(active_, active) == active) return;
  if (active)
    loop_.add_poller(*this);
  else
    loop_.remove_poller(*this);
}

void Lane::set_write_interest(bool interested) {
  if (std::exchange(write_blocked_, interested) == interested) return;
  loop_.change(socket_->fd(), {.read = true, .write = interested});
}

void Lane::on_ready(io::Readiness ready) {
  if (ready.write) set_write_interest(false);
  set_active(true);
  work();
}

bool Lane::poll() {
  if (++idle_polls_ <= kIdlePollsMax) return work();
  set_active(false);
  return false;
}

void Lane::on_time() {
  if (state_ == State::kEnded) return tell_end();
  const std::string_view what = state_ == State::kConnecting ? "could not connect in time"
                                : state_ == State::kGreeting ? "was not answered: the peer did not say hello in time"
                                                             : "was closed, but the peer did not acknowledge that in time";
  end(LinkEnd::Kind::kBroken, about(ErrorCode::kTimeout, what));
  tell_end();
}

// The lane may be gone when this returns: nothing of it is touched after tell_end().
bool Lane::work() {
  NEXAR_ASSERT(!working_, "a lane's callbacks do not run the loop");
  working_ = true;
  if (state_ == State::kConnecting && !write_blocked_) finish_connecting();
  if (std::exchange(ready_due_, false)) handler_->on_ready();
  const bool moved = state_ != State::kConnecting && (work_one_way() || work_one_way());
  working_ = false;
  if (state_ == State::kEnded) {
    tell_end();
    return true;
  }
  if (moved) {
    idle_polls_ = 0;
    if (state_ == State::kClosing) timer_.set(loop_.now() + options_.close_timeout);
  }
  return moved;
}

// Both ways take turns, as the lanes do: what is more urgent than either is looked at in between.
bool Lane::work_one_way() {
  const bool receives = receives_next_;
  receives_next_ = !receives;
  return state_ != State::kEnded && (receives ? receive() : transmit());
}

void Lane::drain() {
  if (state_ != State::kOpen || handler_ == nullptr) return;
  working_ = true;
  for (int turns = 0; turns < kDrainTurnsMax && state_ == State::kOpen && receive(); ++turns) continue;
  working_ = false;
  if (state_ == State::kEnded) tell_end();
}

void Lane::finish_connecting() {
  const Result<bool> connected = socket_->finish_connect();
  if (!connected) return fail(connected.error());
  if (!*connected) return set_write_interest(true);
  socket_->resize_send_buffer(send_buffer_);
  state_ = State::kGreeting;
}

std::size_t Lane::turn_bytes() const {
  if (loop_.is_hurried()) return wire::kBulkBytes;
  const std::size_t bytes = terms_.plain ? 2 * options_.turn_bytes : options_.turn_bytes;
  return counters_.bytes_sent - blocked_at_ < kFlows ? bytes : kLongTurn * bytes;
}

bool Lane::receive() {
  std::array<iovec, RecordParser::kPlacesMax + 1> regions;
  std::size_t budget = turn_bytes() + turn_bytes() / kOfHeadersAndTags;
  bool moved = false;
  while (budget > 0 && state_ != State::kEnded && !peer_ended_) {
    std::size_t wanted = 0;
    std::size_t count = 0;
    for (base::ByteSpan span : parser_.wanted()) {
      span = span.first(std::min(span.size(), budget - wanted));
      if (span.empty()) break;
      regions[count++] = io::region(span);
      wanted += span.size();
    }
    const Result<io::Transferred> read = socket_->read(std::span(regions).first(count));
    if (!read) {
      fail(read.error());
      return true;
    }
    if (read->state == io::Transferred::State::kBlocked) return moved;
    if (read->state == io::Transferred::State::kClosed) {
      cut();
      return true;
    }
    moved = true;
    if (Result<void> parsed = parser_.received(read->bytes); !parsed) {
      fail(parsed.error());
      return true;
    }
    budget -= std::min(budget, read->bytes);
    if (read->bytes < wanted) return moved;  // there is no more now
  }
  return moved;
}

// The stream ended, and the peer had not said that it would.
void Lane::cut() {
  if (state_ == State::kGreeting) return fail(Error(ErrorCode::kRefused, "the peer closed the connection instead of saying hello"));
  const char* where =
      parser_.in_frame() ? "the stream was cut in the middle of a frame" : "the stream was cut: the peer had not said its end";
  fail(Error(ErrorCode::kPeerLost, where));
}

// Pulls frames of `bytes` while there is room; false when there is nothing to write.
bool Lane::fill(std::size_t bytes) {
  std::size_t filled = 0;
  while (state_ == State::kOpen && source_ != nullptr && !source_waits_ && writer_.has_room() && filled < bytes) {
    const std::optional<BulkSource::Frame> frame = source_->next(std::min(writer_.payload_max(), bytes));
    if (state_ == State::kEnded) return false;
    if (!frame) {
      source_waits_ = true;
      break;
    }
    if (!writer_.add(frame->header, frame->payload, frame->stays)) {
      fail(Error(ErrorCode::kOverloaded, "it has used all its record numbers"));
      return false;
    }
    filled += frame->payload.size();
    ++counters_.frames_sent;
    counters_.bytes_sent += wire::kHeaderBytes + frame->payload.size();
  }
  if (state_ == State::kOpen && peer_ended_) {
    state_ = State::kClosing;
    timer_.set(loop_.now() + options_.close_timeout);
  }
  if (state_ == State::kClosing && !end_queued_ && writer_.has_room()) {
    if (!writer_.add(wire::Header{.type = wire::FrameType::kLaneEnd}, {})) {
      fail(Error(ErrorCode::kOverloaded, "it has used all its record numbers"));
      return false;
    }
    end_queued_ = true;
  }
  return !writer_.empty();
}

// The kernel has all that it takes, nearly twice the bytes that it was asked for. If so many are always on their way, the path may hold
// more; if it is far shorter, and a line takes long over them, half of them is enough.
void Lane::fit_send_buffer() {
  if (send_buffer_ >= options_.send_buffer_bytes_max || counters_.bytes_sent - looked_at_ < send_buffer_) return;
  looked_at_ = counters_.bytes_sent;
  const io::StreamPath path = socket_->path();
  if (path.bytes_per_second == 0) return;  // the kernel does not know
  if (path.bytes() >= send_buffer_ + send_buffer_ / 2) {
    const std::size_t wider = std::min(2 * send_buffer_, options_.send_buffer_bytes_max);
    send_buffer_ = socket_->widen_send_buffer(wider) ? wider : options_.send_buffer_bytes_max;  // the kernel may do so by itself
  } else if (send_buffer_ > options_.send_buffer_bytes_min && send_buffer_ <= first_send_buffer_ && path.bytes() < send_buffer_ / 4 &&
             path.bytes_in(kLongQueue) < send_buffer_) {
    send_buffer_ = std::max(send_buffer_ / 2, options_.send_buffer_bytes_min);
    socket_->resize_send_buffer(send_buffer_);
  } else if (send_buffer_ < first_send_buffer_ && path.bytes_in(kShortQueue) > send_buffer_) {
    send_buffer_ = std::min(2 * send_buffer_, first_send_buffer_);
    socket_->resize_send_buffer(send_buffer_);
  }
}

void Lane::hold_back(bool held) {
  if (std::exchange(held_back_, held) != held) socket_->hold_back(held);
}

bool Lane::transmit() {
  std::size_t budget = turn_bytes();
  bool moved = false;
  // Also while epoll is still to say that there is room: in a loop that has other things to do it is asked seldom, and the line runs dry.
  bool refused = false;
  while (budget > 0 && !refused && ((write_blocked_ && !writer_.empty()) || fill(turn_bytes()))) {
    std::array<iovec, RecordWriter::kPiecesMax> regions;
    std::size_t count = 0;
    std::size_t bytes = 0;
    for (const base::ByteView span : writer_.unsent()) {
      regions[count++] = io::region(span);
      bytes += span.size();
    }
    // A frame and its header do not fill their last packet: that waits for the next frame if there is one.
    const bool last = state_ != State::kOpen || source_ == nullptr || source_waits_ || !source_->has_next();
    if (!last) hold_back(true);
    const Result<io::Transferred> written = socket_->write(std::span(regions).first(count));
    if (!written) {
      fail(written.error());
      return true;
    }
    const std::size_t sent = written->bytes;
    writer_.sent(sent);
    moved = moved || sent > 0;
    budget -= std::min(budget, sent);
    refused = sent < bytes;
    set_write_interest(refused);
    if (refused) {
      writer_.settle();
      blocked_at_ = counters_.bytes_sent;
      fit_send_buffer();
    } else if (last) {
      hold_back(false);
    }
  }
  if (state_ != State::kEnded && writer_.empty() && (source_ == nullptr || source_waits_)) hold_back(false);
  if (state_ == State::kClosing && end_queued_ && peer_ended_ && writer_.empty())
    end(closed_here_ ? LinkEnd::Kind::kClosedHere : LinkEnd::Kind::kClosedByPeer,
        about(ErrorCode::kCancelled, closed_here_ ? "was closed here" : "was closed by the peer"));
  return moved || state_ == State::kEnded;
}

}  // namespace nexar::transport::tcp
