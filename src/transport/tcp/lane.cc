// A lane's life: how it begins, what it is asked, how it ends. What it does in a turn is in lane_turn.cc.
#include "transport/tcp/lane.h"

#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "wire/frame.h"

namespace nexar::transport::tcp {
namespace {

// On so long a path the host's BBR is right: with a round trip of 20 ms and one packet in a thousand lost it moves ten times what cubic
// does. It costs a timer for every few packets, which between neighbours halves what one connection moves.
constexpr base::Duration kLongPath = std::chrono::milliseconds(2);

wire::Header header_of_record(wire::FrameType type, const wire::LaneName& name) {
  wire::Header header{.type = type};
  if (type == wire::FrameType::kLaneHello) {
    header.part = name.lane;
    header.id = name.generation;
  }
  return header;
}

}  // namespace

Result<std::unique_ptr<Lane>> Lane::connect(io::Loop& loop, const io::Address& to, const wire::LaneTicket& ticket, LaneKeys keys,
                                            LaneHandler& handler, const Options& options) {
  const io::StreamOptions stream{.receive_buffer_bytes = options.receive_buffer_bytes, .without_bbr = true, .local = options.local};
  Result<io::StreamSocket> socket = io::StreamSocket::connect(to, stream);
  if (!socket) return std::move(socket).error();
  std::unique_ptr<Lane> lane(new Lane(loop, *std::move(socket), std::move(keys), options, State::kConnecting));
  lane->handler_ = &handler;
  lane->writer_.add_clear(ticket);
  lane->say_hello();
  lane->write_blocked_ = true;  // until it is connected
  if (Result<void> watched = lane->watch(); !watched) return std::move(watched).error();
  lane->timer_.set(loop.refresh() + options.connect_timeout);
  return lane;
}

std::unique_ptr<Lane> Lane::accept(io::Loop& loop, io::StreamSocket socket, LaneKeys keys, const Options& options) {
  std::unique_ptr<Lane> lane(new Lane(loop, std::move(socket), std::move(keys), options, State::kOpen));
  lane->socket_->resize_receive_buffer(options.receive_buffer_bytes);
  lane->socket_->resize_send_buffer(lane->send_buffer_);
  lane->say_hello();
  return lane;
}

Lane::Lane(io::Loop& loop, io::StreamSocket socket, LaneKeys keys, const Options& options, State state)
    : loop_(loop),
      socket_(std::move(socket)),
      peer_(socket_->peer()),
      terms_(keys.terms),
      options_(options),
      first_send_buffer_((terms_.plain ? 2 : 1) * options.send_buffer_bytes),
      send_buffer_(first_send_buffer_),
      state_(state),
      writer_(std::move(keys.seal), terms_.plain),
      parser_(std::move(keys.open), terms_.plain, *this),
      timer_(loop, [this] { on_time(); }) {}

Lane::~Lane() {
  set_active(false);
  if (watched_) loop_.unwatch(socket_->fd());
}

void Lane::start(LaneHandler& handler) {
  NEXAR_ASSERT(handler_ == nullptr, "a lane is started once");
  handler_ = &handler;
  ready_due_ = true;
  if (Result<void> watched = watch(); !watched) return end(LinkEnd::Kind::kBroken, std::move(watched).error());
  set_active(true);
}

void Lane::say_hello() {
  const bool sealed = writer_.add(header_of_record(wire::FrameType::kLaneHello, terms_.name), {});
  NEXAR_ASSERT(sealed, "a lane has a number for its hello");
}

void Lane::set_bulk_source(BulkSource* source) {
  source_ = source;
  bulk_ready();  // also without one: the kernel may hold a packet back for what does not come any more
}

// The link has measured what its ends take beside the way, and the lane a queue that others have filled: the shorter of the two is nearer.
void Lane::fit_congestion_control(base::Duration shortest_round_trip) {
  if (!socket_) return;
  const base::Duration measured = socket_->path().round_trip;
  if (shortest_round_trip >= kLongPath && (measured >= kLongPath || measured == base::Duration::zero())) socket_->return_to_bbr();
}

void Lane::bulk_ready() {
  source_waits_ = false;
  if (state_ == State::kOpen && handler_ != nullptr) set_active(true);
}

void Lane::close() {
  if (closed_here_ || state_ == State::kEnded) return;
  if (state_ != State::kOpen && state_ != State::kClosing)
    return end(LinkEnd::Kind::kClosedHere, about(ErrorCode::kCancelled, "was closed here"));
  closed_here_ = true;
  if (state_ == State::kClosing) return;  // the peer was first
  state_ = State::kClosing;
  timer_.set(loop_.refresh() + options_.close_timeout);
  set_active(true);
}

void Lane::abort(std::string_view reason) {
  if (state_ != State::kEnded) end(LinkEnd::Kind::kClosedHere, about(ErrorCode::kCancelled, fmt::format("was aborted here: {}", reason)));
}

TcpLaneCounters Lane::counters() const {
  return {.frames = counters_,
          .records_sealed = writer_.records(),
          .records_opened = parser_.records(),
          .bytes_in_kernel = state_ == State::kEnded ? 0 : socket_->unacknowledged_bytes()};
}

// What every frame passes: the greeting, the end, and what is neither.
Result<Sink*> Lane::on_frame(const wire::Header& header) {
  if (state_ == State::kGreeting) {
    if (auto greeting = greeted(header); !greeting) return std::move(greeting).error();
    return static_cast<Sink*>(nullptr);
  }
  if (header.type == wire::FrameType::kLaneEnd) {
    peer_ended_ = true;
    return static_cast<Sink*>(nullptr);
  }
  if (header.type != wire::FrameType::kBulk)
    return Error(ErrorCode::kRefused, fmt::format("a {} frame came between bulk frames", wire::to_string(header.type)));
  if (peer_ended_) return Error(ErrorCode::kRefused, "a frame came after the last");
  ++counters_.frames_received;
  counters_.bytes_received += wire::kHeaderBytes + header.length;
  Result<Sink*> sink = handler_->on_frame(header);
  if (sink && state_ == State::kEnded) return end_->error;
  return sink;
}

Result<void> Lane::on_frame_end(const wire::Header& header) {
  if (header.type != wire::FrameType::kBulk) return {};
  Result<void> ended = handler_->on_frame_end(header);
  if (ended && state_ == State::kEnded) return end_->error;
  return ended;
}

Result<void> Lane::greeted(const wire::Header& header) {
  if (header.type != wire::FrameType::kLaneHello)
    return Error(ErrorCode::kRefused, fmt::format("the lane begins with a {} frame", wire::to_string(header.type)));
  const Result<wire::LaneHello> hello = wire::decode_frame<wire::LaneHello>(header, {});
  if (!hello) return hello.error();
  if (hello->name != terms_.name)
    return Error(ErrorCode::kRefused, fmt::format("the peer means lane {} in generation {}", hello->name.lane, hello->name.generation));
  state_ = State::kOpen;
  timer_.cancel();
  handler_->on_ready();
  if (state_ == State::kEnded) return end_->error;
  return {};
}

Error Lane::about(ErrorCode code, std::string_view what) const {
  return Error(code, fmt::format("TCP lane {} (generation {}) to {} {}", terms_.name.lane, terms_.name.generation, peer_, what));
}

// What the lane's own checks, its socket or its handler found.
void Lane::fail(const Error& cause) {
  const bool greeting = state_ == State::kConnecting || state_ == State::kGreeting;
  const LinkEnd::Kind kind = greeting && cause.code() == ErrorCode::kRefused ? LinkEnd::Kind::kRefused : LinkEnd::Kind::kBroken;
  end(kind, about(cause.code(), "broke: " + cause.sentence()).with_cause(cause));
}

void Lane::end(LinkEnd::Kind kind, Error error) {
  if (state_ == State::kEnded) return;
  state_ = State::kEnded;
  end_.emplace(LinkEnd{kind, std::move(error)});
  source_ = nullptr;
  set_active(false);
  if (watched_) loop_.unwatch(socket_->fd());
  watched_ = false;
  socket_.reset();
  if (working_) return;  // told when the work is left
  timer_.set(loop_.now());
}

// The lane may be gone afterwards.
void Lane::tell_end() {
  timer_.cancel();
  if (handler_ == nullptr) return;
  const LinkEnd told = *end_;
  handler_->on_end(told);
}

}  // namespace nexar::transport::tcp
