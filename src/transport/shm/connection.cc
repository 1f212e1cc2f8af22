#include "transport/shm/connection.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "transport/shm/endpoint.h"
#include "wire/frame.h"

namespace nexar::transport::shm {
namespace {

// Read in one turn of one lane, so that none keeps the others waiting.
constexpr std::size_t kBytesPerTurn = 256u << 10;

// A pass reads what a ring holds; more than a few are needed only while a living peer goes on writing, who is not waited for.
constexpr int kDrainPasses = 16;

template <typename Lane, typename Make>
std::array<Lane, kLanes> lanes(Make make) {
  return {Lane(make(0)), Lane(make(1)), Lane(make(2)), Lane(make(3))};
}

}  // namespace

Connection::Connection(Endpoint& endpoint, const HostSegment& segment, Ends ends, Channel channel, LinkHandler& handler)
    : endpoint_(endpoint),
      ends_(std::move(ends)),
      channel_(std::move(channel)),
      handler_(&handler),
      memory_(channel_.process, channel_.peer.proof),
      out_lines_(segment.lines(ends_.here, ends_.there)),
      in_lines_(segment.lines(ends_.there, ends_.here)),
      outgoing_(lanes<OutgoingLane>([&](std::size_t lane) {
        return RingWriter(out_lines_.tails[lane], out_lines_.heads[lane], segment.ring(ends_.here, ends_.there, lane));
      })),
      incoming_(lanes<IncomingLane>([&](std::size_t lane) {
        return RingReader(in_lines_.tails[lane], in_lines_.heads[lane], segment.ring(ends_.there, ends_.here, lane));
      })) {
  for (std::size_t slot = kLeases; slot > 0; --slot) free_slots_.push_back(slot - 1);
}

Connection::~Connection() {
  if (flush_due_) endpoint_.forget(*this);
  if (watched_) endpoint_.loop().unwatch(channel_.socket.fd());
}

Result<void> Connection::watch() {
  Result<void> watched = endpoint_.loop().watch(channel_.socket.fd(), {.read = true}, *this);
  watched_ = watched.has_value();
  return watched;
}

std::string Connection::who() const { return fmt::format("process {}", channel_.process); }

bool Connection::turn() {
  if (state_ == State::kEnded) return false;
  bool busy = false;
  for (std::size_t lane = 0; lane < kLanes && !fault_; ++lane) {
    if (lane == kBulk && unshown_ > 0) show();  // what answers the others does not wait for bulk
    busy = read_lane(lane, kBytesPerTurn) || busy;
  }
  for (OutgoingLane& lane : outgoing_) busy = pump(lane) || busy;
  busy = refill_bulk() || busy;
  tell_waiting();
  return settle() || busy;
}

bool Connection::has_work() {
  if (state_ == State::kEnded || fault_ || abort_due_) return true;
  if (bulk_ != nullptr && !bulk_waits_ && !told_waiting_) return true;
  for (IncomingLane& lane : incoming_)
    if (lane.ring.available() > 0 || lane.ring.is_broken()) return true;
  return told_waiting_ && std::any_of(outgoing_.begin(), outgoing_.end(), [](const OutgoingLane& lane) { return lane.ring.has_moved(); });
}

void Connection::drain() {
  bool read = state_ != State::kEnded;
  for (int pass = 0; pass < kDrainPasses && read && !fault_; ++pass) {
    read = false;
    for (std::size_t lane = 0; lane < kLanes && !fault_; ++lane) read = read_lane(lane, kPairBytesMax) || read;
  }
}

// The other end's last word, or its death. What it had written before is delivered first; it writes no more, so that ends.
void Connection::on_ready(io::Readiness) {
  if (state_ == State::kEnded) return;
  send_loans();
  std::vector<ReceivedLoan> loans;
  const std::optional<Channel::Last> last = channel_.read(loans);
  take_loans(std::move(loans));
  if (!last) return;
  const auto word = last->word;
  if (word != LastWord::kExpelled && word != LastWord::kProtocol) drain();
  if (!fault_) fault_ = end_told_by_peer(*last);
  end(*std::exchange(fault_, std::nullopt), std::nullopt);
}

bool Connection::tell(SentLoan loan) {
  if (state_ == State::kEnded || (loan.memory != nullptr && loans_.size() >= kLoansWaitingMax)) return false;
  loans_.push_back(std::move(loan));
  send_loans();
  return true;
}

// What a socket that is gone swallows, nobody misses.
void Connection::send_loans() {
  if (loans_.empty()) return;
  while (!loans_.empty() && channel_.say(loans_.front())) loans_.pop_front();
  endpoint_.loop().change(channel_.socket.fd(), {.read = true, .write = !loans_.empty()});
}

void Connection::take_loans(std::vector<ReceivedLoan> loans) {
  for (ReceivedLoan& loan : loans)
    if (auto taken = endpoint_.take_loan(ends_.there, std::move(loan)); !taken && !fault_)
      fault_ = {LinkEnd::Kind::kProtocol, std::move(taken).error()};
}

LinkEnd Connection::end_told_by_peer(const Channel::Last& last) const {
  using Kind = LinkEnd::Kind;
  if (state_ == State::kFarewell || abort_due_)  // how a peer answers a goodbye
    return {Kind::kClosedHere, Error(ErrorCode::kCancelled, "closed here: " + close_text_)};
  if (!last.word) return {Kind::kBroken, Error(ErrorCode::kPeerLost, fmt::format("{} is gone", who()))};
  const auto told = [&](ErrorCode code) { return Error(code, fmt::format("{} ended the link: {}", who(), last.text)); };
  switch (*last.word) {
    case LastWord::kClosed: return {Kind::kClosedByPeer, told(ErrorCode::kPeerLost)};
    case LastWord::kAborted: return {Kind::kBroken, told(ErrorCode::kPeerLost)};
    case LastWord::kProtocol: return {Kind::kRefused, told(ErrorCode::kRefused)};
    case LastWord::kExpelled: return {Kind::kExpelled, told(ErrorCode::kPeerLost)};
  }
  NEXAR_ASSERT(false, "a last word is one of four");
}

void Connection::close(wire::GoodbyeReason reason, std::string_view text) {
  if (state_ != State::kOpen) return;
  close_reason_ = reason;
  close_text_ = text;
  state_ = State::kDraining;
}

void Connection::abort(std::string_view reason) {
  if (state_ == State::kEnded) return;
  close_text_ = reason;
  abort_due_ = true;
}

void Connection::expel(std::string_view reason) {
  expels_ = true;
  abort(reason);
}

Result<void> Connection::export_key(std::string_view, base::ByteView, base::ByteSpan) const {
  return Error(ErrorCode::kUnsupported, "a link through shared memory has no keys");
}

// Whether anything happened.
bool Connection::settle() {
  if (state_ == State::kEnded) return false;
  for (const OutgoingLane& lane : outgoing_)
    if (lane.ring.is_broken() && !fault_)
      fault_ = {LinkEnd::Kind::kProtocol,
                Error(ErrorCode::kRefused, fmt::format("{} says that it has read what was never written", who()))};
  if (fault_) {
    const LastWord word = fault_->kind == LinkEnd::Kind::kProtocol ? LastWord::kProtocol : LastWord::kAborted;
    end(*std::exchange(fault_, std::nullopt), word);
    return true;
  }
  if (abort_due_ || (state_ == State::kFarewell && is_all_read())) {
    const LastWord aborted = expels_ ? LastWord::kExpelled : LastWord::kAborted;
    end({LinkEnd::Kind::kClosedHere, Error(ErrorCode::kCancelled, "closed here: " + close_text_)},
        abort_due_ ? aborted : LastWord::kClosed);
    return true;
  }
  if (state_ == State::kDraining && is_all_read()) {
    say_goodbye();
    return true;
  }
  announce_room();
  return false;
}

// The last frame. It concerns the link and not a view, so its epoch is 0.
void Connection::say_goodbye() {
  state_ = State::kFarewell;
  std::vector<std::byte> frame(wire::frame_bytes_max<wire::Goodbye>());
  frame.resize(wire::encode_frame(wire::Goodbye{.reason = close_reason_, .text = close_text_}, {}, frame));
  put_frame(*wire::decode_header(frame), nullptr, base::ByteView(frame).subspan(wire::kHeaderBytes));
  show();
}

void Connection::announce_room() {
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    // Half of what may wait, so that an owner is told for several frames and not for each.
    if (outgoing_[lane].owner_waits && outgoing_[lane].backlog_bytes() <= kBacklogBytesMax[lane] / 2) {
      outgoing_[lane].owner_waits = false;
      handler_->on_room(static_cast<wire::Lane>(lane));
    }
}

// From here on nothing of the segment is looked at.
void Connection::end(LinkEnd end, std::optional<LastWord> word) {
  if (state_ == State::kEnded) return;
  state_ = State::kEnded;
  if (word) channel_.say_last(*word, end.kind == LinkEnd::Kind::kClosedHere ? close_text_ : end.error.sentence());
  loans_.clear();
  endpoint_.unlinked(ends_.there);
  handler_->on_end(end);
}

}  // namespace nexar::transport::shm
