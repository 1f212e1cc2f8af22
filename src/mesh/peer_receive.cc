// The receiving half of a peer: into the user's memory where a receive waits, under credit where none does.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "mesh/peer.h"
#include "mesh/peer_control.h"

namespace nexar::mesh {
namespace {

// A message of this size does not stay in the second-level cache of any core until its reader comes.
constexpr std::uint64_t kPastCacheBytes = 4u << 20;

}  // namespace

// Gives an owned receive its memory; an error when the message does not fit.
Result<void> Peer::prepare(Receive& receive, std::uint64_t bytes) const {
  if (receive.allocate)
    if (auto allocated = receive.allocate(receive, bytes); !allocated) return allocated;
  if (receive.capacity >= bytes) return {};
  return Error(ErrorCode::kMismatch, fmt::format("rank {} sent {} bytes, and the receive has room for {}", rank_, bytes, receive.capacity))
      .with_rank(rank_);
}

Result<transport::Sink*> Peer::begin_message(const wire::Header& header) {
  const Result<wire::EagerMessage> message = wire::read_header<wire::EagerMessage>(header);
  if (!message) return message.error();
  if (message->kind != wire::Kind::kPointToPoint)
    return Error(ErrorCode::kRefused, fmt::format("rank {} sent a collective's message; none runs", rank_));
  Inbox& inbox = inboxes_[header.group];
  inbox.outstanding_bytes += header.length;
  ++inbox.outstanding_messages;
  if (inbox.outstanding_bytes > around_.limits.bytes || inbox.outstanding_messages > around_.limits.messages)
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
  if (announce.kind != wire::Kind::kPointToPoint)
    return Error(ErrorCode::kRefused, fmt::format("rank {} announced a collective's message; none runs", rank_));
  last_announced_ = announce.transfer;
  if (withdrawn_early_.erase(announce.transfer) > 0) return {};
  Inbox& inbox = inboxes_[header.group];
  if (Receive* receive = around_.matcher.match(header.group, rank_, announce.key); receive != nullptr) {
    if (inbox.wants > 0) --inbox.wants;
    start_transfer(*receive, header.group, announce.key, announce.transfer, announce.bytes);
    return {};
  }
  if (inbox.announcements >= around_.limits.announcements + inbox.wants)
    return Error(ErrorCode::kRefused,
                 fmt::format("rank {} announced more than {} messages in a group", rank_, around_.limits.announcements));
  ++inbox.announcements;
  around_.matcher.keep(
      header.group,
      {.source = rank_, .tag = announce.key, .bytes = announce.bytes, .form = Arrival::Form::kAnnounced, .transfer = announce.transfer});
  return {};
}

void Peer::start_transfer(Receive& receive, GroupId group, Tag tag, std::uint64_t transfer, std::uint64_t bytes) {
  if (auto prepared = prepare(receive, bytes); !prepared) {
    const bool truncated = prepared.error().code() == ErrorCode::kMismatch;
    send_control(wire::Refuse{.transfer = transfer, .reason = truncated ? wire::RefuseReason::kTruncated : wire::RefuseReason::kCancelled},
                 group);
    return finish(receive, std::move(prepared).error());
  }
  send_control(wire::Grant{.transfer = transfer, .bytes = bytes}, group);
  if (bytes == 0) return finish(receive, Status{0, rank_, tag});
  incoming_[transfer] = {&receive, tag, bytes, RegionCursor<Region>(std::span<const Region>(receive.regions)), 0};
}

Result<transport::Sink*> Peer::begin_bulk(const wire::Header& header) {
  const Result<wire::Bulk> bulk = wire::read_header<wire::Bulk>(header);
  if (!bulk) return bulk.error();
  const auto found = incoming_.find(bulk->transfer);
  bulk_transfer_ = found == incoming_.end() ? 0 : bulk->transfer;
  if (bulk_transfer_ == 0) return static_cast<transport::Sink*>(nullptr);  // stopped here; the sender may not know yet
  const Incoming& incoming = found->second;
  if (bulk->offset != incoming.received || header.length > incoming.bytes - incoming.received)
    return Error(ErrorCode::kRefused, fmt::format("rank {} sent bytes {} to {} of a transfer that has {} of {}", rank_, bulk->offset,
                                                  bulk->offset + header.length, incoming.received, incoming.bytes));
  return &bulk_sink_;
}

void Peer::take_bulk(base::ByteView bytes) {
  const auto found = incoming_.find(bulk_transfer_);
  if (found == incoming_.end()) return;  // stopped in the middle of a frame
  write(found->second.to, bytes, found->second.bytes >= kPastCacheBytes);
  found->second.received += bytes.size();
}

std::size_t Peer::place_bulk(std::size_t bytes, std::span<base::ByteSpan> regions) {
  const auto found = incoming_.find(bulk_transfer_);
  return found == incoming_.end() ? 0 : found->second.to.pieces(bytes, regions);
}

void Peer::placed_bulk(std::size_t bytes) {
  Incoming& incoming = incoming_.at(bulk_transfer_);
  for (std::size_t left = bytes; left > 0;) {
    const std::size_t piece = incoming.to.piece(left).size();
    incoming.to.advance(piece);
    left -= piece;
  }
  incoming.received += bytes;
}

Result<void> Peer::end_bulk(const wire::Header& header) {
  const auto found = incoming_.find(bulk_transfer_);
  if (bulk_transfer_ == 0 || found == incoming_.end() || found->second.received < found->second.bytes) return {};
  const Incoming incoming = found->second;
  incoming_.erase(found);
  send_control(wire::Watermark{.transfer = bulk_transfer_, .bytes = incoming.bytes, .final = true}, header.group);
  finish(*incoming.receive, Status{incoming.bytes, rank_, incoming.tag});
  return {};
}

// Credit goes back in portions, so that a stream of small messages does not cost a frame each.
void Peer::give_back(GroupId group, std::uint64_t bytes) {
  if (link_ == nullptr || revoked_) return;  // nothing more comes for which it would be needed
  Inbox& inbox = inboxes_[group];
  inbox.due_bytes += bytes;
  ++inbox.due_messages;
  if (inbox.due_bytes * 2 < around_.limits.bytes && inbox.due_messages * 2 < around_.limits.messages) return;
  inbox.outstanding_bytes -= inbox.due_bytes;
  inbox.outstanding_messages -= inbox.due_messages;
  send_control(wire::Credit{.bytes = std::exchange(inbox.due_bytes, 0), .messages = std::exchange(inbox.due_messages, 0)}, group);
}

Result<void> Peer::on_queued(GroupId group, const wire::Queued& queued) {
  Inbox& inbox = inboxes_[group];
  inbox.sender_queues = queued.messages > 0;
  if (inbox.sender_queues) around_.matcher.for_each_posted(group, rank_, [&](const Receive& receive) { want(receive); });
  return {};
}

// Tells a sender that queues what a receive waits for.
void Peer::want(const Receive& receive) {
  const auto inbox = inboxes_.find(receive.group);
  if (inbox == inboxes_.end() || !inbox->second.sender_queues) return;
  ++inbox->second.wants;
  send_control(wire::Want{.any_tag = !receive.tag, .key = receive.tag.value_or(0)}, receive.group);
}

// Control frames may overtake announcements, which come in the order of their numbers: one that is not here yet is dropped when it comes.
Result<void> Peer::on_withdraw(GroupId group, const wire::Withdraw& withdraw) {
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
  const auto found = incoming_.find(withdraw.transfer);
  if (found == incoming_.end()) return {};
  Receive* receive = found->second.receive;
  const Tag tag = found->second.tag;
  incoming_.erase(found);
  finish(*receive, Error(ErrorCode::kCancelled, fmt::format("rank {} took its message with tag {} back", rank_, tag)).with_rank(rank_));
  return {};
}

bool Peer::stop(Receive& receive) {
  const auto found = std::find_if(incoming_.begin(), incoming_.end(), [&](const auto& entry) { return entry.second.receive == &receive; });
  if (found != incoming_.end()) {
    const std::uint64_t transfer = found->first;
    incoming_.erase(found);
    send_control(wire::Refuse{.transfer = transfer, .reason = wire::RefuseReason::kCancelled}, receive.group);
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
