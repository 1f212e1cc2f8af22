// The sending half of a peer: eager messages, announcements, transfers.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "mesh/peer.h"
#include "mesh/peer_control.h"

namespace nexar::mesh {

void Peer::send(Send& send) {
  Outbox& box = outbox(send.group);
  if (box.waiting.empty()) {
    const Attempt attempt = try_send(box, send);
    if (attempt == Attempt::kGone) return;
    send.state = Send::State::kQueued;
    box.waiting.push_back(&send);
    if (attempt == Attempt::kMustWait) tell_queued(send.group, box);
    return;
  }
  send.state = Send::State::kQueued;
  if (satisfy_want(box, send)) return;
  box.waiting.push_back(&send);
}

// A send that is gone may have been completed: nothing of it is touched afterwards.
Peer::Attempt Peer::try_send(Outbox& box, Send& send) {
  if (!ready_) return Attempt::kNoRoom;
  switch (box.way(send.bytes)) {
    case Outbox::Way::kEager:
      if (!send_eagerly(send)) return Attempt::kNoRoom;
      box.sent_eagerly(send.bytes);
      finish(send, {});
      return Attempt::kGone;
    case Outbox::Way::kAnnounce:
      if (!announce(send)) return Attempt::kNoRoom;
      box.announced();
      return Attempt::kGone;
    case Outbox::Way::kWait: break;
  }
  return Attempt::kMustWait;
}

bool Peer::send_eagerly(Send& send) {
  const wire::Header header = wire::header_of(wire::EagerMessage{.key = send.tag}, {.group = send.group, .epoch = around_.epoch},
                                              static_cast<std::uint32_t>(send.bytes));
  RegionCursor<ConstRegion> from{std::span<const ConstRegion>(send.regions)};
  return link_->send(header, gather(from, static_cast<std::size_t>(send.bytes)));
}

// The next bytes in one piece: where they are, or copied together when regions are small.
base::ByteView Peer::gather(RegionCursor<ConstRegion>& from, std::size_t bytes) {
  const base::ByteView piece = from.piece(bytes);
  if (piece.size() == bytes) {
    from.advance(bytes);
    return piece;
  }
  read(from, around_.scratch.first(bytes));
  return around_.scratch.first(bytes);
}

bool Peer::announce(Send& send) {
  const wire::Announce message{.key = send.tag, .transfer = next_transfer_, .bytes = send.bytes};
  std::vector<std::byte> frame(wire::frame_bytes_max<wire::Announce>());
  frame.resize(wire::encode_frame(message, {.group = send.group, .epoch = around_.epoch}, frame));
  if (!send_frame(frame)) return false;
  send.transfer = next_transfer_++;
  send.state = Send::State::kAnnounced;
  announced_[send.transfer] = &send;
  return true;
}

// Sends what waits, in order, as far as credit, announcements and the lane allow. Completions may add to what waits or take from it.
void Peer::drain(GroupId group, Outbox& box) {
  while (!box.waiting.empty()) {
    Send* send = box.waiting.front();
    box.waiting.pop_front();
    const Attempt attempt = try_send(box, *send);
    if (link_ == nullptr) return;  // a completion ended the link, and this box with it
    if (attempt == Attempt::kGone) continue;
    box.waiting.push_front(send);
    if (attempt == Attempt::kMustWait) tell_queued(group, box);
    return;
  }
  if (std::exchange(box.told, false)) send_control(wire::Queued{.messages = 0}, group);
  box.wants.clear();
}

void Peer::tell_queued(GroupId group, Outbox& box) {
  if (std::exchange(box.told, true)) return;
  send_control(wire::Queued{.messages = static_cast<std::uint32_t>(box.waiting.size())}, group);
}

// A receive of the peer waits for just this message: it is announced past those before it, which that receive does not want.
bool Peer::satisfy_want(Outbox& box, Send& send) {
  const auto want =
      std::find_if(box.wants.begin(), box.wants.end(), [&](const Outbox::Want& one) { return !one.tag || *one.tag == send.tag; });
  if (want == box.wants.end() || !announce(send)) return false;
  box.announced();
  box.wants.erase(want);
  return true;
}

Result<void> Peer::on_want(GroupId group, const wire::Want& want) {
  if (want.kind != wire::Kind::kPointToPoint) return {};
  Outbox& box = outbox(group);
  const std::optional<Tag> tag = want.any_tag ? std::nullopt : std::optional<Tag>(want.key);
  const auto waiting = std::find_if(box.waiting.begin(), box.waiting.end(), [&](const Send* send) { return !tag || send->tag == *tag; });
  if (waiting == box.waiting.end()) {
    if (!box.told) return {};  // nothing waits any more: what the receive wants is on its way
    if (box.wants.size() >= kWantsMax)
      return Error(ErrorCode::kRefused, fmt::format("rank {} asks for more than {} messages at once", rank_, kWantsMax));
    box.wants.push_back({tag});
    return {};
  }
  Send* send = *waiting;
  if (!announce(*send)) {  // no room in the lane: it is asked for again when there is
    box.wants.push_back({tag});
    return {};
  }
  box.announced();
  box.waiting.erase(waiting);
  if (box.waiting.empty()) drain(group, box);
  return {};
}

Result<void> Peer::on_grant(const wire::Grant& grant) {
  const auto found = announced_.find(grant.transfer);
  if (found == announced_.end()) return {};  // taken back meanwhile; the peer learns it
  Send* send = found->second;
  if (grant.offset != 0 || grant.bytes != send->bytes)
    return Error(ErrorCode::kRefused, fmt::format("rank {} granted {} bytes of a message of {}", rank_, grant.bytes, send->bytes));
  announced_.erase(found);
  const GroupId group = send->group;
  Outbox& box = outbox(group);
  box.announcement_gone();
  if (send->bytes == 0) {
    finish(*send, {});
  } else {
    send->state = Send::State::kGranted;
    active_.push_back({send, RegionCursor<ConstRegion>(std::span<const ConstRegion>(send->regions)), 0});
    link_->bulk_ready();
  }
  if (link_ != nullptr) drain(group, box);
  return {};
}

// The next bulk frame: transfers take turns.
std::optional<transport::BulkSource::Frame> Peer::next() {
  if (active_.empty()) return std::nullopt;
  Outgoing& outgoing = active_.front();
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(wire::kBulkBytesMax, outgoing.send->bytes - outgoing.offset));
  const wire::Bulk bulk{.transfer = outgoing.send->transfer, .offset = outgoing.offset};
  const base::ByteView payload = gather(outgoing.from, size);
  const Frame frame{wire::header_of(bulk, {.group = outgoing.send->group, .epoch = around_.epoch}, static_cast<std::uint32_t>(size)),
                    payload, payload.data() != around_.scratch.data()};
  outgoing.offset += size;
  if (outgoing.offset == outgoing.send->bytes) {
    sent_[outgoing.send->transfer] = outgoing.send;
    active_.pop_front();
  } else {
    active_.splice(active_.end(), active_, active_.begin());
  }
  return frame;
}

Result<void> Peer::on_watermark(const wire::Watermark& watermark) {
  const auto found = sent_.find(watermark.transfer);
  if (!watermark.final || found == sent_.end()) return {};
  Send* send = found->second;
  if (watermark.bytes != send->bytes)
    return Error(ErrorCode::kRefused, fmt::format("rank {} says it has {} bytes of a message of {}", rank_, watermark.bytes, send->bytes));
  sent_.erase(found);
  link_->let_go(watermark.transfer);
  finish(*send, {});
  return {};
}

Result<void> Peer::on_refuse(const wire::Refuse& refuse) {
  Send* send = release(refuse.transfer);
  if (send == nullptr) return {};
  if (refuse.reason == wire::RefuseReason::kTruncated)
    finish(*send, {});  // the receive was too short: that is the receiver's error
  else
    finish(*send,
           Error(ErrorCode::kCancelled, fmt::format("rank {} no longer wants the message with tag {}", rank_, send->tag)).with_rank(rank_));
  return {};
}

// Takes a transfer out of whichever table has it; null when none has.
Send* Peer::release(std::uint64_t transfer) {
  Send* send = nullptr;
  if (const auto announced = announced_.find(transfer); announced != announced_.end()) {
    send = announced->second;
    announced_.erase(announced);
    outbox(send->group).announcement_gone();
  } else if (const auto done = sent_.find(transfer); done != sent_.end()) {
    send = done->second;
    sent_.erase(done);
  } else if (const auto active =
                 std::find_if(active_.begin(), active_.end(), [&](const Outgoing& one) { return one.send->transfer == transfer; });
             active != active_.end()) {
    send = active->send;
    active_.erase(active);
  }
  if (link_ != nullptr) link_->let_go(transfer);
  return send;
}

void Peer::cancel(Send& send) {
  const Error cancelled =
      Error(ErrorCode::kCancelled, fmt::format("the send of tag {} to rank {} was cancelled", send.tag, rank_)).with_rank(rank_);
  if (send.state == Send::State::kQueued) {
    std::erase(outbox(send.group).waiting, &send);
  } else {
    release(send.transfer);
    send_control(wire::Withdraw{.transfer = send.transfer}, send.group);
  }
  const GroupId group = send.group;
  finish(send, cancelled);
  if (link_ != nullptr) drain(group, outbox(group));
}

}  // namespace nexar::mesh
