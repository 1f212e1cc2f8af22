#include "cluster/host_pair.h"

#include <utility>

#include <fmt/format.h>

#include "cluster/host_formation.h"
#include "io/network_namespace.h"
#include "wire/frame.h"

namespace nexar::cluster {

using transport::shm::Channel;

HostPair::~HostPair() { unwatch(); }

void HostPair::unwatch() {
  if (std::exchange(watched_, false)) host_.loop().unwatch(channel_->socket.fd());
}

void HostPair::attach(transport::Link& link, const wire::Hello& hello, base::Time deadline) {
  link_ = &link;
  hello_ = hello;
  deadline_ = deadline;
  state_ = State::kUndecided;
}

template <typename M>
void HostPair::say(const M& message) {
  if (link_ == nullptr) return;
  std::vector<std::byte> frame(wire::frame_bytes_max<M>());
  frame.resize(wire::encode_frame(message, {.epoch = host_.epoch()}, frame));
  const bool taken = link_->send(*wire::decode_header(frame), base::ByteView(frame).subspan(wire::kHeaderBytes));
  if (!taken) link_->abort("the link ends before it began");  // it was closed meanwhile: an empty lane takes these few frames
}

void HostPair::offer() {
  if (host_.failure()) return pronounce(false, *host_.failure());
  nonce_ = host_.expect([this](Channel channel) { arrived(std::move(channel)); });
  say(wire::HostOffer{.name = host_.listener_name(), .nonce = nonce_});
}

Result<transport::Sink*> HostPair::on_frame(const wire::Header& header) {
  using wire::FrameType;
  const FrameType type = header.type;
  const bool undecided = state_ == State::kUndecided;
  const bool expected =
      type == FrameType::kGoodbye || (undecided && (caller_ ? type == FrameType::kHostAnswer && !their_answer_
                                                            : type == FrameType::kHostOffer || type == FrameType::kHostVerdict));
  if (!expected)
    return Error(ErrorCode::kRefused, fmt::format("rank {} sent a {} frame, which nothing here takes", rank_, wire::to_string(type)));
  payload_.clear();
  return static_cast<transport::Sink*>(this);
}

Result<void> HostPair::on_frame_end(const wire::Header& header) {
  switch (header.type) {
    case wire::FrameType::kHostOffer: {
      const Result<wire::HostOffer> offer = wire::decode_frame<wire::HostOffer>(header, payload_);
      return offer ? on_offer(*offer) : Result<void>(offer.error());
    }
    case wire::FrameType::kHostAnswer: {
      const Result<wire::HostAnswer> answer = wire::decode_frame<wire::HostAnswer>(header, payload_);
      if (!answer) return answer.error();
      their_answer_ = *answer;
      decide();
      return {};
    }
    case wire::FrameType::kHostVerdict: {
      const Result<wire::HostVerdict> verdict = wire::decode_frame<wire::HostVerdict>(header, payload_);
      if (!verdict) return verdict.error();
      if (verdict->memory && (!answered_ || !channel_))
        return Error(ErrorCode::kRefused, fmt::format("rank {} uses memory that was not agreed on", rank_));
      if (verdict->memory)
        use_memory(verdict->reads);
      else
        use_network(verdict->why);
      if (state_ == State::kNetwork) link_ = nullptr;
      if (state_ != State::kUndecided) host_.may_send(rank_);
      return {};
    }
    default: link_->abort("goodbye"); return {};
  }
}

// Of the higher rank.
Result<void> HostPair::on_offer(const wire::HostOffer& offer) {
  if (channel_ || answered_) return Error(ErrorCode::kRefused, fmt::format("rank {} offers memory twice", rank_));
  if (auto opened = open_channel(offer); !opened) answer(opened.error().sentence());
  return {};
}

Result<void> HostPair::open_channel(const wire::HostOffer& offer) {
  if (host_.failure()) return Error(ErrorCode::kUnsupported, *host_.failure());
  auto connected = io::in_network_namespace(host_.network_namespace(), [&]() -> Result<void> {
    Result<Channel> channel = Channel::connect(transport::shm::channel_name(offer.name));
    if (!channel) return std::move(channel).error();
    channel_.emplace(*std::move(channel));
    return {};
  });
  if (!connected) return connected;
  nonce_ = offer.nonce;
  if (auto greeted = channel_->greet({nonce_, host_.endpoint().proof(), 0}, host_.endpoint().bell(), -1); !greeted) return greeted;
  if (auto watching = host_.loop().watch(channel_->socket.fd(), {.read = true}, *this); !watching) return watching;
  watched_ = true;
  return {};
}

// Of the higher rank: the lower one's greeting, with the segment if it is the first of the host.
void HostPair::on_ready(io::Readiness) {
  const Result<bool> here = channel_->read_greeting();
  if (here && !*here) return;
  unwatch();
  if (!here) return answer(here.error().sentence());
  if (channel_->peer.nonce != nonce_) return answer("the process at the unix socket is another one");
  greeted_ = true;
  if (channel_->segment) host_.take_segment(std::move(channel_->segment), channel_->peer.segment_bytes, local_);
  go_on();
}

// Of the lower rank.
void HostPair::arrived(Channel channel) {
  if (state_ != State::kUndecided) return;
  const bool first = host_.passes_segment();
  const transport::shm::Greeting greeting{nonce_, host_.endpoint().proof(), first ? host_.endpoint().segment()->bytes() : 0};
  if (auto greeted = channel.greet(greeting, host_.endpoint().bell(), first ? host_.endpoint().segment()->fd() : -1); !greeted) return;
  channel_.emplace(std::move(channel));
  decide();
}

void HostPair::go_on() {
  if (state_ != State::kUndecided) return;
  if (caller_) return decide();
  if (answered_ || !greeted_) return;
  if (host_.failure()) return answer(*host_.failure());
  if (host_.endpoint().segment() != nullptr) answer("");
}

void HostPair::give_up() {
  if (state_ != State::kUndecided) return;
  deadline_ = base::Time::max();
  if (caller_)
    pronounce(false, "the other end did not agree in time");
  else if (!answered_)
    answer("the memory of this host was not there in time");
}

bool HostPair::reads() const { return io::ProcessMemory(channel_->process, channel_->peer.proof).works(); }

void HostPair::answer(const std::string& why_not) {
  unwatch();
  answered_ = true;
  say(wire::HostAnswer{.ready = why_not.empty(), .reads = why_not.empty() && reads(), .why = why_not});
  if (!why_not.empty()) channel_.reset();
}

void HostPair::decide() {
  if (state_ != State::kUndecided || !their_answer_) return;
  if (!their_answer_->ready) return pronounce(false, their_answer_->why);
  if (host_.failure()) return pronounce(false, *host_.failure());
  if (channel_ && host_.endpoint().segment() != nullptr) pronounce(true, "");
}

void HostPair::pronounce(bool memory, const std::string& why_not) {
  const wire::HostVerdict verdict{.memory = memory, .reads = memory && reads(), .why = why_not};
  host_.forget(nonce_);
  if (memory)
    use_memory(their_answer_->reads);
  else
    use_network(why_not);
  say(verdict);
  if (state_ == State::kNetwork) link_ = nullptr;
}

void HostPair::use_memory(bool peer_reads) {
  transport::shm::Ends ends{.here = host_.local(), .there = local_, .reads = reads(), .peer_reads = peer_reads};
  ends.address = link_->peer_address();
  Channel channel = *std::exchange(channel_, std::nullopt);
  const Result<transport::Link*> link = host_.endpoint().connect(std::move(ends), std::move(channel), host_.handler(rank_));
  if (!link) return link_->abort(link.error().sentence());
  state_ = State::kMemory;
  host_.attach(rank_, **link, hello_);
}

void HostPair::use_network(const std::string& why_not) {
  unwatch();
  channel_.reset();
  why_ = why_not;
  state_ = State::kNetwork;
  host_.not_by_memory(rank_, why_not);
  host_.attach(rank_, *link_, hello_);
  link_->set_handler(host_.handler(rank_));
}

void HostPair::end(std::string_view reason) {
  if (state_ == State::kNetwork || link_ == nullptr) return;
  link_->abort(reason);
}

void HostPair::on_end(const transport::LinkEnd& end) {
  link_ = nullptr;
  if (state_ != State::kUndecided) return;
  unwatch();
  channel_.reset();
  host_.forget(nonce_);
  state_ = State::kAbsent;
  answered_ = greeted_ = false;
  their_answer_.reset();
  if (caller_)
    host_.lost(rank_, end);
  else
    host_.unlinked(rank_);
}

}  // namespace nexar::cluster
