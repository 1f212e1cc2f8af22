#include "mesh/peer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "mesh/steps.h"

namespace nexar::mesh {
namespace {

bool is_collective(const wire::Header& header) { return (header.flags & wire::kFlagCollective) != 0; }
// Of control frames, those that calls need: about their transfers, and about the lanes that carry them.
bool outlives_epoch(const wire::Header& header) {
  switch (header.type) {
    case wire::FrameType::kLaneOffer:
    case wire::FrameType::kLaneAnswer:
    case wire::FrameType::kLaneDown: return true;
    default: return wire::is_of_call(header.id);
  }
}

}  // namespace

Peer::Peer(Rank rank, Surroundings surroundings)
    : rank_(rank),
      around_(surroundings),
      control_lane_(around_.epoch, around_.lanes == nullptr ? nullptr : &around_.lanes->loop),
      link_way_(around_.epoch, around_.scratch,
                [this] {
                  if (link_ != nullptr) link_->bulk_ready();
                }),
      outgoing_(rank, control_lane_, link_way_),
      incoming_(rank, control_lane_),
      lanes_({around_.self, rank, around_.epoch, around_.scratch, around_.lanes, control_lane_, outgoing_, incoming_,
              [this](const wire::Header& header) { return is_drained(header); }, [this] { tell(around_.events.lanes_settled, rank_); }}),
      early_groups_(rank, around_.steps.known_groups()),
      steps_({rank, around_.epoch, around_.limits, around_.steps, early_groups_, control_lane_}) {
  outgoing_.set_let_go([this](std::uint64_t transfer) {
    if (link_ != nullptr) link_->let_go(transfer);
  });
  outgoing_.set_wanted([this] { lanes_.want(); });
  incoming_.set_wanted([this] { lanes_.want(); });
  if (around_.lanes != nullptr) outgoing_.set_lane_bytes_min(around_.lanes->forced ? 0 : kLaneBytesMin);
}

void Peer::attach(transport::Link& link, const EagerLimits& limits) {
  link_ = &link;
  control_lane_.begin(link);
  peer_limits_ = limits;
  for (auto& [group, box] : outboxes_) box.begin(limits);
}

void Peer::on_ready() {
  ready_ = true;
  link_->set_bulk_source(&link_way_);
  if (!link_->is_memory()) lanes_.begin(*link_);
  steps_.begin(*link_, peer_limits_);
  for (auto& [group, box] : outboxes_) drain(group, box);
  if (around_.rpc != nullptr) around_.rpc->on_rpc_room(rank_);
  tell(around_.events.ready, rank_);
}

const transport::LaneCounters& Peer::counters(wire::Lane lane) const {
  return link_ != nullptr ? link_->counters(lane) : counters_[static_cast<std::size_t>(lane)];
}

// What nobody here wants any more: frames of another epoch, everything of a peer that has left, and messages when the epoch is over or this
// node leaves. Calls go on when an epoch ends.
bool Peer::is_drained(const wire::Header& header) const {
  if (header.type == wire::FrameType::kGoodbye) return false;
  if (departure_) return true;
  if (header.lane() == wire::Lane::kRpc || (header.type == wire::FrameType::kBulk && wire::is_of_call(header.id)))
    return leaving_.has_value();
  if (header.epoch != around_.epoch) return true;
  return (revoked_ || leaving_) && header.lane() != wire::Lane::kControl;
}

Result<transport::Sink*> Peer::on_frame(const wire::Header& header) {
  if (!ready_) on_ready();  // the caller has our hello
  if (is_drained(header)) {
    if (header.epoch != around_.epoch) ++around_.frames_of_other_epochs;
    return static_cast<transport::Sink*>(nullptr);
  }
  if (wire::rules_of(header.type).urgent) lanes_.hurry();
  switch (header.type) {
    case wire::FrameType::kMessage: return is_collective(header) ? steps_.on_frame(header) : begin_message(header);
    case wire::FrameType::kBulk: return arrivals_.on_frame(header);
    case wire::FrameType::kAnnounce: announce_.clear(); return &announce_sink_;
    default: break;
  }
  if (header.lane() == wire::Lane::kRpc && around_.rpc != nullptr) {
    rpc_payload_.clear();
    rpc_payload_.reserve(header.length);
    return &rpc_sink_;
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
    case wire::FrameType::kMessage: return is_collective(header) ? steps_.on_frame_end(header) : end_message(header);
    case wire::FrameType::kBulk: return arrivals_.on_frame_end(header);
    case wire::FrameType::kAnnounce: {
      const Result<wire::Announce> announce = wire::decode_frame<wire::Announce>(header, announce_);
      return announce ? on_announce(header, *announce) : Result<void>(announce.error());
    }
    default: break;
  }
  return header.lane() == wire::Lane::kRpc ? around_.rpc->on_rpc_frame(rank_, header, rpc_payload_) : on_control(header);
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
        control_lane_.send(wire::Pong{.nonce = m.nonce, .time = m.time}, header.group);
        return Result<void>();
      });
    case wire::FrameType::kPong:
      return decoded.template operator()<wire::Pong>([&](const wire::Pong& m) {
        lanes_.on_pong(m.nonce);
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
  if (leaving_ || (revoked_ && !outlives_epoch(header))) return {};
  switch (header.type) {
    case wire::FrameType::kVerdict:
      return decoded.template operator()<wire::Verdict>([&](const wire::Verdict& m) {
        tell(around_.events.verdict, rank_, header.group, m);
        return Result<void>();
      });
    case wire::FrameType::kProbe:
      return decoded.template operator()<wire::Probe>([&](const wire::Probe& m) {
        tell(around_.events.probe, rank_, header.group, m);
        return Result<void>();
      });
    case wire::FrameType::kProbeReply:
      return decoded.template operator()<wire::ProbeReply>([&](const wire::ProbeReply& m) {
        tell(around_.events.probe_reply, rank_, header.group, m);
        return Result<void>();
      });
    case wire::FrameType::kGrant: return decoded.template operator()<wire::Grant>([&](const auto& m) { return on_grant(header.group, m); });
    case wire::FrameType::kRefuse: return decoded.template operator()<wire::Refuse>([&](const auto& m) { return on_refuse(m); });
    case wire::FrameType::kWatermark:
      return decoded.template operator()<wire::Watermark>([&](const auto& m) { return outgoing_.on_watermark(m); });
    case wire::FrameType::kResume: return decoded.template operator()<wire::Resume>([&](const auto& m) { return outgoing_.on_resume(m); });
    case wire::FrameType::kWant: return decoded.template operator()<wire::Want>([&](const auto& m) { return on_want(header.group, m); });
    case wire::FrameType::kQueued:
      return decoded.template operator()<wire::Queued>([&](const auto& m) { return on_queued(header.group, m); });
    case wire::FrameType::kWithdraw:
      return decoded.template operator()<wire::Withdraw>([&](const auto& m) { return on_withdraw(header.group, m); });
    case wire::FrameType::kLaneOffer:
      return decoded.template operator()<wire::LaneOffer>([&](const auto& m) { return lanes_.on_offer(m); });
    case wire::FrameType::kLaneAnswer:
      return decoded.template operator()<wire::LaneAnswer>([&](const auto& m) { return lanes_.on_answer(m); });
    case wire::FrameType::kLaneDown: return decoded.template operator()<wire::LaneDown>([&](const auto& m) { return lanes_.on_down(m); });
    case wire::FrameType::kCredit:
      return decoded.template operator()<wire::Credit>([&](const wire::Credit& m) {
        if (m.kind == wire::Kind::kCollective) {
          steps_.on_credit(header.group, m);
          return Result<void>();
        }
        const auto box = outboxes_.find(header.group);
        if (box == outboxes_.end()) return Result<void>();  // nothing was sent there
        box->second.credit(m.bytes, m.messages);
        drain(header.group, box->second);
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
  if (!around_.events.verdict_due || !around_.events.verdict_due()) {
    end_operations(*departure_);
    around_.steps.on_departure(rank_, *departure_);
  }
  end_calls(*departure_);
  tell(around_.events.left, rank_);
  return {};
}

void Peer::on_room(wire::Lane lane) {
  if (lane == wire::Lane::kControl) {
    if (control_lane_.drain() && leaving_ && link_ != nullptr) link_->close(*leaving_);
    return;
  }
  if (lane == wire::Lane::kRpc) {
    if (around_.rpc != nullptr) around_.rpc->on_rpc_room(rank_);
    return;
  }
  for (auto& [group, box] : outboxes_) drain(group, box);
  steps_.drain();
}

bool Peer::ping(std::uint64_t nonce, std::uint64_t time) {
  if (link_ == nullptr || !ready_) return false;
  control_lane_.send(wire::Ping{.nonce = nonce, .time = time}, 0);
  return true;
}

void Peer::revoke(const Error& verdict) {
  revoked_ = true;
  end_operations(verdict);
}

void Peer::leave(std::string_view text) {
  if (leaving_) return;
  leaving_ = text;
  if (link_ != nullptr && control_lane_.flush()) link_->close(text);
}

// A link that ends before the peer has used it was never one: the peer may open another.
void Peer::on_end(const transport::LinkEnd& end) {
  for (std::size_t lane = 0; lane < counters_.size(); ++lane) counters_[lane] = link_->counters(static_cast<wire::Lane>(lane));
  link_ = nullptr;
  lanes_.end();
  control_lane_.end();
  steps_.end();
  const bool was_ready = std::exchange(ready_, false);
  if (was_ready)
    end_calls(Error(ErrorCode::kPeerLost, fmt::format("the link to rank {} has ended", rank_)).with_rank(rank_).with_cause(end.error));
  if (was_ready && !departure_ && !leaving_) tell(around_.events.lost, rank_, end);
  tell(around_.events.ended, rank_);
}

// Everything that needs the peer. Tables are emptied before anybody is told, because those who are told come back.
void Peer::end_operations(const Error& verdict) {
  std::vector<Send*> sends;
  for (auto& [group, box] : outboxes_) sends.insert(sends.end(), box.waiting.begin(), box.waiting.end());
  for (const auto& [transfer, send] : announced_) sends.push_back(send);
  std::vector<Receive*> receives = around_.matcher.drop_source(rank_);
  if (arriving_ != nullptr) receives.push_back(arriving_);
  if (taken_over_ != nullptr && taken_over_->taker != nullptr) receives.push_back(taken_over_->taker);

  outboxes_.clear();
  inboxes_.clear();
  announced_.clear();
  arriving_ = nullptr;
  keeping_ = nullptr;
  taken_over_.reset();

  for (Send* send : sends) finish(*send, verdict);
  for (Receive* receive : receives) finish(*receive, verdict);
  outgoing_.end_all_but_calls(verdict);
  incoming_.end_all_but_calls(verdict);
}

void Peer::end_calls(const Error& why) {
  if (gone_) return;
  gone_ = why;
  if (around_.rpc != nullptr) around_.rpc->on_rpc_gone(rank_, why);
}

void Peer::finish(Send& send, Result<void> result) {
  send.state = Send::State::kIdle;
  std::exchange(send.done, nullptr)(std::move(result));
}

void Peer::finish(Receive& receive, Result<Status> result) {
  receive.state = Receive::State::kIdle;
  std::exchange(receive.done, nullptr)(std::move(result));
}

}  // namespace nexar::mesh
