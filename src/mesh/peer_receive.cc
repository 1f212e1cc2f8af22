// The receiving half of a peer: into the user's memory where a receive waits, under credit where none does.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "mesh/peer.h"
#include "mesh/steps.h"

namespace nexar::mesh {

// Gives an owned receive its memory; an error when the message does not fit.
Result<void> Peer::prepare(Receive& receive, std::uint64_t bytes) const {
  if (receive.allocate)
    if (auto allocated = receive.allocate(receive, bytes); !allocated) return allocated;
  if (receive.capacity >= bytes) return {};
  return Error(ErrorCode::kMismatch, fmt::format("rank {} sent {} bytes, and the receive has room for {}", rank_, bytes, receive.capacity))
      .with_rank(rank_);
}

// Of a group that the peer names.
Result<Peer::Inbox*> Peer::inbox(GroupId group) {
  const auto [found, added] = inboxes_.try_emplace(group);
  if (!added) return &found->second;
  if (auto admitted = early_groups_.admit(group); !admitted) {
    inboxes_.erase(found);
    return std::move(admitted).error();
  }
  return &found->second;
}

Result<transport::Sink*> Peer::begin_message(const wire::Header& header) {
  const Result<wire::EagerMessage> message = wire::read_header<wire::EagerMessage>(header);
  if (!message) return message.error();
  const Result<Inbox*> named = inbox(header.group);
  if (!named) return named.error();
  Inbox& box = **named;
  box.outstanding_bytes += header.length;
  ++box.outstanding_messages;
  if (box.outstanding_bytes > around_.limits.bytes || box.outstanding_messages > around_.limits.messages)
    return Error(ErrorCode::kRefused, fmt::format("rank {} sent more than its credit of {} bytes and {} messages in a group", rank_,
                                                  around_.limits.bytes, around_.limits.messages));
  arriving_error_.reset();
  arriving_ = around_.matcher.match(header.group, rank_, message->key);
  if (arriving_ == nullptr) {
    keeping_ = around_.matcher.keep(header.group, {.source = rank_, .tag = message->key, .bytes = header.length});
    keeping_->content.reserve(header.length);
    return &message_sink_;
  }
  if (auto prepared = prepare(*arriving_, header.length); !prepared) {
    arriving_error_ = std::move(prepared).error();
    return static_cast<transport::Sink*>(nullptr);
  }
  arriving_to_ = RegionCursor<Region>(std::span<const Region>(arriving_->regions));
  return &message_sink_;
}

void Peer::take_message(base::ByteView bytes) {
  if (arriving_ != nullptr)
    write(arriving_to_, bytes);
  else if (keeping_ != nullptr)
    keeping_->content.insert(keeping_->content.end(), bytes.begin(), bytes.end());
}

Result<void> Peer::end_message(const wire::Header& header) {
  if (Receive* receive = std::exchange(arriving_, nullptr); receive != nullptr) {
    give_back(header.group, header.length);
    if (arriving_error_)
      finish(*receive, *std::exchange(arriving_error_, std::nullopt));
    else
      finish(*receive, Status{header.length, rank_, header.key});
    return {};
  }
  Arrival* kept = std::exchange(keeping_, nullptr);
  if (kept == nullptr) {  // its receive was cancelled while it came
    give_back(header.group, header.length);
    return {};
  }
  kept->complete = true;
  if (taken_over_ == nullptr) return {};
  const std::unique_ptr<Arrival> arrival = std::move(taken_over_);
  if (arrival->taker != nullptr)
    copy_out(*arrival->taker, *arrival, header.group);
  else
    give_back(header.group, header.length);
  return {};
}

void Peer::copy_out(Receive& receive, const Arrival& arrival, GroupId group) {
  give_back(group, arrival.bytes);
  if (auto prepared = prepare(receive, arrival.bytes); !prepared) return finish(receive, std::move(prepared).error());
  RegionCursor<Region> to{std::span<const Region>(receive.regions)};
  write(to, arrival.content);
  finish(receive, Status{arrival.bytes, rank_, arrival.tag});
}

void Peer::deliver(Receive& receive, std::unique_ptr<Arrival> arrival) {
  switch (arrival->form) {
    case Arrival::Form::kAnnounced: return start_transfer(receive, receive.group, arrival->tag, arrival->transfer, arrival->bytes);
    case Arrival::Form::kEager:
      if (arrival->complete) return copy_out(receive, *arrival, receive.group);
      arrival->taker = &receive;  // the rest is on its way
      taken_over_ = std::move(arrival);
      return;
    case Arrival::Form::kLocal: break;
  }
  NEXAR_ASSERT(false, "what a node sends itself does not pass a peer");
}

Result<void> Peer::on_announce(const wire::Header& header, const wire::Announce& announce) {
  if (announce.kind == wire::Kind::kCollective) {
    around_.steps.on_announced(rank_, header.group, announce);
    return {};
  }
  last_announced_ = announce.transfer;
  if (withdrawn_early_.erase(announce.transfer) > 0) return {};
  const Result<Inbox*> named = inbox(header.group);
  if (!named) return named.error();
  Inbox& box = **named;
  if (Receive* receive = around_.matcher.match(header.group, rank_, announce.key); receive != nullptr) {
    if (box.wants > 0) --box.wants;
    start_transfer(*receive, header.group, announce.key, announce.transfer, announce.bytes);
    return {};
  }
  if (box.announcements >= around_.limits.announcements + box.wants)
    return Error(ErrorCode::kRefused,
                 fmt::format("rank {} announced more than {} messages in a group", rank_, around_.limits.announcements));
  ++box.announcements;
  around_.matcher.keep(
      header.group,
      {.source = rank_, .tag = announce.key, .bytes = announce.bytes, .form = Arrival::Form::kAnnounced, .transfer = announce.transfer});
  return {};
}

void Peer::start_transfer(Receive& receive, GroupId group, Tag tag, std::uint64_t transfer, std::uint64_t bytes) {
  if (auto prepared = prepare(receive, bytes); !prepared) {
    const bool truncated = prepared.error().code() == ErrorCode::kMismatch;
    control_lane_.send(
        wire::Refuse{.transfer = transfer, .reason = truncated ? wire::RefuseReason::kTruncated : wire::RefuseReason::kCancelled}, group);
    return finish(receive, std::move(prepared).error());
  }
  if (bytes == 0) {
    control_lane_.send(wire::Grant{.transfer = transfer}, group);
    return finish(receive, Status{0, rank_, tag});
  }
  MessageSink& sink = messages_arriving_.emplace(transfer, MessageSink(receive, bytes)).first->second;
  const auto done = [this, transfer, status = Status{bytes, rank_, tag}](const Result<void>& result) {
    Receive& arrived = messages_arriving_.extract(transfer).mapped().receive();
    finish(arrived, result ? Result<Status>(status) : Result<Status>(result.error()));
  };
  incoming_.grant(transfer, {.owner = {.group = group, .key = tag}, .bytes = bytes, .sink = &sink, .done = done});
}

// Credit goes back in portions, so that a stream of small messages does not cost a frame each.
void Peer::give_back(GroupId group, std::uint64_t bytes) {
  if (link_ == nullptr || revoked_) return;  // nothing more comes for which it would be needed
  Inbox& box = inboxes_[group];
  box.due_bytes += bytes;
  ++box.due_messages;
  if (box.due_bytes * 2 < around_.limits.bytes && box.due_messages * 2 < around_.limits.messages) return;
  box.outstanding_bytes -= box.due_bytes;
  box.outstanding_messages -= box.due_messages;
  control_lane_.send(wire::Credit{.bytes = std::exchange(box.due_bytes, 0), .messages = std::exchange(box.due_messages, 0)}, group);
}

Result<void> Peer::on_queued(GroupId group, const wire::Queued& queued) {
  if (queued.kind == wire::Kind::kCollective) return steps_.on_queued(group, queued);
  const Result<Inbox*> named = inbox(group);
  if (!named) return named.error();
  (*named)->sender_queues = queued.messages > 0;
  if ((*named)->sender_queues) around_.matcher.for_each_posted(group, rank_, [&](const Receive& receive) { want(receive); });
  return {};
}

// Tells a sender that queues what a receive waits for.
void Peer::want(const Receive& receive) {
  const auto box = inboxes_.find(receive.group);
  if (box == inboxes_.end() || !box->second.sender_queues) return;
  ++box->second.wants;
  control_lane_.send(wire::Want{.any_tag = !receive.tag, .key = receive.tag.value_or(0)}, receive.group);
}

// Control frames may overtake announcements, which come in the order of their numbers: one that is not here yet is dropped when it comes.
Result<void> Peer::on_withdraw(GroupId group, const wire::Withdraw& withdraw) {
  if ((withdraw.transfer & wire::kChosenByReceiver) != 0 ||
      wire::is_of_call(withdraw.transfer)) {  // not announced: granted ahead, or of a call
    incoming_.on_withdraw(withdraw);
    return {};
  }
  if (withdraw.transfer > last_announced_) {
    if (withdrawn_early_.size() == kWithdrawnEarlyMax)
      return Error(ErrorCode::kRefused,
                   fmt::format("rank {} took back more than {} messages that it had not announced", rank_, kWithdrawnEarlyMax));
    withdrawn_early_.insert(withdraw.transfer);
    return {};
  }
  if (around_.matcher.withdraw(group, rank_, withdraw.transfer) != nullptr) {
    announcement_taken(group);
    return {};
  }
  incoming_.on_withdraw(withdraw);
  return {};
}

bool Peer::stop(Receive& receive) {
  const auto found = std::find_if(messages_arriving_.begin(), messages_arriving_.end(),
                                  [&](const auto& entry) { return &entry.second.receive() == &receive; });
  if (found != messages_arriving_.end()) {
    incoming_.cancel(found->first);
    messages_arriving_.erase(found);
    return true;
  }
  if (arriving_ == &receive) {
    arriving_ = nullptr;  // the rest of the frame goes nowhere
    return true;
  }
  if (taken_over_ != nullptr && taken_over_->taker == &receive) {
    taken_over_->taker = nullptr;
    return true;
  }
  return false;
}

}  // namespace nexar::mesh
