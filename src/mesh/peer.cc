#include "mesh/peer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "mesh/peer_control.h"

namespace nexar::mesh {

void Peer::attach(transport::Link& link, const EagerLimits& limits) {
  link_ = &link;
  peer_limits_ = limits;
  for (auto& [group, box] : outboxes_) box.begin(limits);
}

void Peer::on_ready() {
  ready_ = true;
  link_->set_bulk_source(this);
  for (auto& [group, box] : outboxes_) drain(group, box);
  tell(around_.events.ready, rank_);
}

const transport::LaneCounters& Peer::counters(wire::Lane lane) const {
  return link_ != nullptr ? link_->counters(lane) : counters_[static_cast<std::size_t>(lane)];
}

// What nobody here wants any more: frames of another epoch, everything of a peer that has left, and messages when the epoch is over or this
// node leaves.
bool Peer::is_drained(const wire::Header& header) const {
  if (header.type == wire::FrameType::kGoodbye) return false;
  if (departure_ || header.epoch != around_.epoch) return true;
  return (revoked_ || leaving_) && header.lane() != wire::Lane::kControl;
}

Result<transport::Sink*> Peer::on_frame(const wire::Header& header) {
  if (!ready_) on_ready();  // the caller has our hello
  if (is_drained(header)) {
    if (header.epoch != around_.epoch) ++around_.frames_of_other_epochs;
    return static_cast<transport::Sink*>(nullptr);
  }
  switch (header.type) {
    case wire::FrameType::kMessage: return begin_message(header);
    case wire::FrameType::kBulk: return begin_bulk(header);
    case wire::FrameType::kAnnounce: announce_.clear(); return &announce_sink_;
    default: break;
  }
  if (header.lane() != wire::Lane::kControl)
    return Error(ErrorCode::kRefused,
                 fmt::format("rank {} sent a {} frame, which nothing here takes", rank_, wire::to_string(header.type)));
  control_.clear();
  return &control_sink_;
}

Result<void> Peer::on_frame_end(const wire::Header& header) {
  if (is_drained(header)) return {};
  switch (header.type) {
    case wire::FrameType::kMessage: return end_message(header);
    case wire::FrameType::kBulk: return end_bulk(header);
    case wire::FrameType::kAnnounce: {
      const Result<wire::Announce> announce = wire::decode_frame<wire::Announce>(header, announce_);
      return announce ? on_announce(header, *announce) : Result<void>(announce.error());
    }
    default: return on_control(header);
  }
}

// One line for each type: decode it, then act.
Result<void> Peer::on_control(const wire::Header& header) {
  const auto decoded = [&]<typename M>(auto&& act) -> Result<void> {
    const Result<M> message = wire::decode_frame<M>(header, control_);
    if (!message) return message.error();
    return act(*message);
  };
  switch (header.type) {
    case wire::FrameType::kPing:
      return decoded.template operator()<wire::Ping>([&](const wire::Ping& m) {
        send_control(wire::Pong{.nonce = m.nonce, .time = m.time}, header.group);
        return Result<void>();
      });
    case wire::FrameType::kPong:
      return decoded.template operator()<wire::Pong>([&](const wire::Pong& m) {
        tell(around_.events.pong, rank_, m);
        return Result<void>();
      });
    case wire::FrameType::kGoodbye: return decoded.template operator()<wire::Goodbye>([&](const auto& m) { return on_goodbye(m); });
    case wire::FrameType::kRevoke:
      return decoded.template operator()<wire::Revoke>([&](const wire::Revoke& m) {
        tell(around_.events.revoked, rank_, m);
        return Result<void>();
      });
    case wire::FrameType::kAbort:
      return decoded.template operator()<wire::Abort>([&](const wire::Abort& m) {
        tell(around_.events.aborted, rank_, m.reason);
        return Result<void>();
      });
    default: break;
  }
  if (revoked_ || leaving_) return {};
  switch (header.type) {
    case wire::FrameType::kGrant: return decoded.template operator()<wire::Grant>([&](const auto& m) { return on_grant(m); });
    case wire::FrameType::kRefuse: return decoded.template operator()<wire::Refuse>([&](const auto& m) { return on_refuse(m); });
    case wire::FrameType::kWatermark: return decoded.template operator()<wire::Watermark>([&](const auto& m) { return on_watermark(m); });
    case wire::FrameType::kWant: return decoded.template operator()<wire::Want>([&](const auto& m) { return on_want(header.group, m); });
    case wire::FrameType::kQueued:
      return decoded.template operator()<wire::Queued>([&](const auto& m) { return on_queued(header.group, m); });
    case wire::FrameType::kWithdraw:
      return decoded.template operator()<wire::Withdraw>([&](const auto& m) { return on_withdraw(header.group, m); });
    case wire::FrameType::kCredit:
      return decoded.template operator()<wire::Credit>([&](const wire::Credit& m) {
        Outbox& box = outbox(header.group);
        box.credit(m.bytes, m.messages);
        drain(header.group, box);
        return Result<void>();
      });
    default:
      return Error(ErrorCode::kRefused,
                   fmt::format("rank {} sent a {} frame, which nothing here takes", rank_, wire::to_string(header.type)));
  }
}

// A peer that leaves is told apart from one that is lost: only what needs it ends. Any other reason to say goodbye is a loss like any
// other.
Result<void> Peer::on_goodbye(const wire::Goodbye& goodbye) {
  if (goodbye.reason != wire::GoodbyeReason::kLeaving)
    return Error(ErrorCode::kPeerLost, fmt::format("rank {} ended the link: {}", rank_, goodbye.text)).with_rank(rank_);
  if (departure_) return {};
  link_->abort("goodbye");
  departure_ = Error(ErrorCode::kPeerLost, fmt::format("rank {} has left", rank_)).with_rank(rank_);
  end_operations(*departure_);
  tell(around_.events.left, rank_);
  return {};
}

void Peer::on_room(wire::Lane lane) {
  if (lane == wire::Lane::kControl) {
    if (send_backlog() && leaving_ && link_ != nullptr) link_->close(*leaving_);
    return;
  }
  for (auto& [group, box] : outboxes_) drain(group, box);
}

// Whether all of it is gone.
bool Peer::send_backlog() {
  while (!backlog_.empty() && send_frame(backlog_.front())) {
    backlog_bytes_ -= backlog_.front().size();
    backlog_.pop_front();
  }
  return backlog_.empty();
}

bool Peer::ping(std::uint64_t nonce, std::uint64_t time) {
  if (link_ == nullptr || !ready_) return false;
  send_control(wire::Ping{.nonce = nonce, .time = time}, 0);
  return true;
}

void Peer::revoke(const Error& verdict) {
  revoked_ = true;
  end_operations(verdict);
}

void Peer::leave(std::string_view text) {
  if (leaving_) return;
  leaving_ = text;
  if (link_ != nullptr && backlog_.empty()) link_->close(text);
}

// A link that ends before the peer has used it was never one: the peer may open another.
void Peer::on_end(const transport::LinkEnd& end) {
  for (std::size_t lane = 0; lane < counters_.size(); ++lane) counters_[lane] = link_->counters(static_cast<wire::Lane>(lane));
  link_ = nullptr;
  backlog_.clear();
  backlog_bytes_ = 0;
  const bool was_ready = std::exchange(ready_, false);
  if (was_ready && !departure_ && !leaving_) tell(around_.events.lost, rank_, end);
  tell(around_.events.ended, rank_);
}

// Everything that needs the peer. Tables are emptied before anybody is told, because those who are told come back.
void Peer::end_operations(const Error& verdict) {
  std::vector<Send*> sends;
  for (auto& [group, box] : outboxes_) sends.insert(sends.end(), box.waiting.begin(), box.waiting.end());
  for (const auto& [transfer, send] : announced_) sends.push_back(send);
  if (link_ != nullptr) {
    for (const Outgoing& outgoing : active_) link_->let_go(outgoing.send->transfer);
    for (const auto& [transfer, send] : sent_) link_->let_go(transfer);
  }
  for (const Outgoing& outgoing : active_) sends.push_back(outgoing.send);
  for (const auto& [transfer, send] : sent_) sends.push_back(send);
  std::vector<Receive*> receives = around_.matcher.drop_source(rank_);
  for (const auto& [transfer, incoming] : incoming_) receives.push_back(incoming.receive);
  if (arriving_ != nullptr) receives.push_back(arriving_);
  if (taken_over_ != nullptr && taken_over_->taker != nullptr) receives.push_back(taken_over_->taker);

  outboxes_.clear();
  inboxes_.clear();
  announced_.clear();
  active_.clear();
  sent_.clear();
  incoming_.clear();
  arriving_ = nullptr;
  keeping_ = nullptr;
  taken_over_.reset();

  for (Send* send : sends) finish(*send, verdict);
  for (Receive* receive : receives) finish(*receive, verdict);
}

void Peer::finish(Send& send, Result<void> result) {
  send.state = Send::State::kIdle;
  std::exchange(send.done, nullptr)(std::move(result));
}

void Peer::finish(Receive& receive, Result<Status> result) {
  receive.state = Receive::State::kIdle;
  std::exchange(receive.done, nullptr)(std::move(result));
}

bool Peer::send_frame(base::ByteView frame) {
  const wire::Header header = *wire::decode_header(frame);
  return link_ == nullptr || link_->send(header, frame.subspan(wire::kHeaderBytes));
}

}  // namespace nexar::mesh
