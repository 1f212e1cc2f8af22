#include "transport/tcp/listener.h"

#include <cstring>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "wire/frame.h"
#include "wire/header.h"

namespace nexar::transport::tcp {
namespace {

// Whether an opened record is the hello of that lane. The keys are the lane's own, so anything else is a defect of the peer's.
bool names_lane(base::ByteView clear, const wire::LaneName& name) {
  const Result<wire::Header> header = wire::decode_header(clear);
  if (!header || header->type != wire::FrameType::kLaneHello) return false;
  const Result<wire::LaneHello> hello = wire::decode_frame<wire::LaneHello>(*header, {});
  return hello && hello->name == name;
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::open(io::Loop& loop, const io::Address& local, const LaneOptions& options) {
  // The window that a connection can ever have is fixed when it is made, by the listener's buffer.
  const io::StreamOptions stream{.receive_buffer_bytes = options.receive_buffer_bytes, .without_bbr = true};
  Result<io::StreamListener> socket = io::StreamListener::listen(local, stream);
  if (!socket) return std::move(socket).error();
  std::unique_ptr<Listener> listener(new Listener(loop, *std::move(socket), options));
  if (Result<void> watched = loop.watch(listener->socket_.fd(), {.read = true}, *listener); !watched) return std::move(watched).error();
  return listener;
}

Listener::Listener(io::Loop& loop, io::StreamListener socket, const LaneOptions& options)
    : loop_(loop),
      socket_(std::move(socket)),
      local_(socket_.local_address()),
      options_(options),
      timer_(loop, [this] { expire(); }),
      pause_(loop, [this] { resume(); }) {}

Listener::~Listener() {
  strangers_.clear();
  loop_.unwatch(socket_.fd());
}

Result<void> Listener::expect(const wire::LaneTicket& ticket, LaneKeys keys, LaneAcceptor& acceptor) {
  if (expected_.size() >= kExpectedMax) return Error(ErrorCode::kOverloaded, "too many TCP lanes are offered and not yet connected");
  const bool added = expected_.try_emplace(ticket, Expected{std::move(keys), &acceptor}).second;
  if (!added) return Error(ErrorCode::kInvalidArgument, "the ticket of a TCP lane is expected already");
  return {};
}

void Listener::on_ready(io::Readiness) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    Result<std::optional<io::StreamSocket>> accepted = socket_.accept();
    if (!accepted) {
      ++counters_.accept_errors;
      loop_.change(socket_.fd(), {.read = false});
      pause_.set(loop_.now() + kAcceptPause);
      return;
    }
    if (!*accepted) return;
    admit(**std::move(accepted));
  }
}

void Listener::resume() { loop_.change(socket_.fd(), {.read = true}); }

void Listener::admit(io::StreamSocket socket) {
  if (strangers_.size() >= kPendingMax) drop(strangers_.front(), counters_.made_way);
  socket.resize_receive_buffer(kStrangerBufferBytes);
  Stranger& stranger = strangers_.emplace_back(*this, std::move(socket), loop_.now() + kHelloTimeout);
  stranger.self = std::prev(strangers_.end());
  if (!stranger.watch()) return drop(stranger, counters_.accept_errors);
  set_timer();
}

Listener::Stranger::Stranger(Listener& its_listener, io::StreamSocket its_socket, base::Time until)
    : listener(its_listener), socket(std::move(its_socket)), deadline(until) {}

Listener::Stranger::~Stranger() {
  if (watched) listener.loop_.unwatch(socket.fd());
}

Result<void> Listener::Stranger::watch() {
  Result<void> result = listener.loop_.watch(socket.fd(), {.read = true}, *this);
  watched = result.has_value();
  return result;
}

void Listener::Stranger::on_ready(io::Readiness) { listener.read_hello(*this); }

void Listener::read_hello(Stranger& stranger) {
  const Result<io::Transferred> read = stranger.socket.read(base::ByteSpan(stranger.hello).subspan(stranger.received));
  if (!read || read->state == io::Transferred::State::kClosed) return drop(stranger, counters_.gone);
  if (read->state == io::Transferred::State::kBlocked) return;
  stranger.received += read->bytes;
  check_hello(stranger);
}

void Listener::check_hello(Stranger& stranger) {
  wire::LaneTicket ticket;
  if (stranger.received < ticket.size()) return;
  std::memcpy(ticket.data(), stranger.hello.data(), ticket.size());
  const auto found = expected_.find(ticket);
  if (found == expected_.end()) return drop(stranger, counters_.unknown_tickets);
  if (stranger.received < stranger.hello.size()) return;

  LaneKeys& keys = found->second.keys;
  std::array<std::byte, wire::kHeaderBytes> clear;
  const bool opened = keys.open.open(clear, base::ByteView(stranger.hello).subspan(ticket.size()));
  // Who saw the ticket but has not the keys does not use it up: the right one may still come.
  if (!opened) return drop(stranger, counters_.forged_hellos);

  Expected expected = std::move(found->second);
  expected_.erase(found);
  if (!names_lane(clear, expected.keys.terms.name)) return drop(stranger, counters_.forged_hellos);

  loop_.unwatch(stranger.socket.fd());
  stranger.watched = false;
  std::unique_ptr<Lane> lane = Lane::accept(loop_, std::move(stranger.socket), std::move(expected.keys), options_);
  drop(stranger, counters_.accepted);
  expected.acceptor->on_lane(ticket, std::move(lane));
}

void Listener::drop(Stranger& stranger, std::uint64_t& count) {
  ++count;
  strangers_.erase(stranger.self);
  set_timer();
}

void Listener::expire() {
  while (!strangers_.empty() && strangers_.front().deadline <= loop_.now()) drop(strangers_.front(), counters_.timed_out);
  set_timer();
}

void Listener::set_timer() {
  if (strangers_.empty())
    timer_.cancel();
  else
    timer_.set(strangers_.front().deadline);
}

}  // namespace nexar::transport::tcp
