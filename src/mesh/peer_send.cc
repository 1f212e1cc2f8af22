// The sending half of a peer: eager messages, announcements, transfers.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "mesh/peer.h"
#include "mesh/transfer_text.h"

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
  return link_->send(header, gather(from, static_cast<std::size_t>(send.bytes), around_.scratch));
}

bool Peer::announce(Send& send) {
  const wire::Announce message{.key = send.tag, .transfer = outgoing_.next_number(), .bytes = send.bytes};
  std::vector<std::byte> frame(wire::frame_bytes_max<wire::Announce>());
  frame.resize(wire::encode_frame(message, {.group = send.group, .epoch = around_.epoch}, frame));
  if (link_ != nullptr && !link_->send(*wire::decode_header(frame), base::ByteView(frame).subspan(wire::kHeaderBytes))) return false;
  send.transfer = outgoing_.take_number();
  send.state = Send::State::kAnnounced;
  announced_[send.transfer] = &send;
  return true;
}

// Where there is no room nothing is said: it is said again while it waits.
void Peer::announce(GroupId group, wire::Announce announcement) {
  if (link_ == nullptr || !ready_) return;
  announcement.transfer = outgoing_.take_number();
  std::vector<std::byte> frame(wire::frame_bytes_max<wire::Announce>());
  frame.resize(wire::encode_frame(announcement, {.group = group, .epoch = around_.epoch}, frame));
  (void)link_->send(*wire::decode_header(frame), base::ByteView(frame).subspan(wire::kHeaderBytes));
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
  if (std::exchange(box.told, false)) control_lane_.send(wire::Queued{.messages = 0}, group);
  box.wants.clear();
}

void Peer::tell_queued(GroupId group, Outbox& box) {
  if (std::exchange(box.told, true)) return;
  control_lane_.send(wire::Queued{.messages = static_cast<std::uint32_t>(box.waiting.size())}, group);
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
  if (want.kind == wire::Kind::kCollective) return steps_.on_want(group, want);
  const auto found = outboxes_.find(group);
  if (found == outboxes_.end()) return {};  // nothing waits there
  Outbox& box = found->second;
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

Result<void> Peer::on_grant(GroupId group, const wire::Grant& grant) {
  if (grant.ahead) return on_grant_ahead(group, grant);
  if (wire::is_of_call(grant.transfer)) return bodies_.on_grant(grant);
  const auto found = announced_.find(grant.transfer);
  if (found == announced_.end()) return {};  // taken back meanwhile; the peer learns it
  Send* send = found->second;
  if (grant.offset != 0 || grant.bytes != send->bytes)
    return Error(ErrorCode::kRefused, fmt::format("rank {} granted {} bytes of a message of {}", rank_, grant.bytes, send->bytes));
  announced_.erase(found);
  Outbox& box = outbox(group);
  box.announcement_gone();
  if (send->bytes == 0) {
    finish(*send, {});
  } else {
    send->state = Send::State::kGranted;
    outgoing_.begin(grant, {.owner = {.group = group, .key = send->tag}, .regions = send->regions, .done = [send](Result<void> result) {
                              finish(*send, std::move(result));
                            }});
  }
  if (link_ != nullptr) drain(group, box);
  return {};
}

Result<void> Peer::on_grant_ahead(GroupId group, const wire::Grant& grant) {
  if (!around_.events.granted_ahead)
    return Error(ErrorCode::kRefused, fmt::format("rank {} granted a part of an operation ahead, and none runs here", rank_));
  if (auto admitted = early_groups_.admit(group); !admitted) return admitted;
  if (auto kept = outgoing_.keep_ahead(group, grant); !kept) return kept;
  tell(around_.events.granted_ahead, rank_, group, grant);
  return {};
}

Result<void> Peer::on_refuse(const wire::Refuse& refuse) {
  if (bodies_.on_refuse(refuse)) return {};
  if (Send* send = release_announced(refuse.transfer); send != nullptr)
    finish(*send, refusal(rank_, {.group = send->group, .key = send->tag}, refuse.reason));
  else if (outgoing_.on_refuse(refuse) == OutgoingTransfers::Refused::kAhead)
    tell(around_.events.refused_ahead, rank_, refuse);
  return {};
}

// Takes out a send that is announced; null when there is none.
Send* Peer::release_announced(std::uint64_t transfer) {
  const auto announced = announced_.find(transfer);
  if (announced == announced_.end()) return nullptr;
  Send* send = announced->second;
  announced_.erase(announced);
  outbox(send->group).announcement_gone();
  return send;
}

void Peer::cancel(Send& send) {
  const Error cancelled =
      Error(ErrorCode::kCancelled, fmt::format("the send of tag {} to rank {} was cancelled", send.tag, rank_)).with_rank(rank_);
  if (send.state == Send::State::kQueued) {
    std::erase(outbox(send.group).waiting, &send);
  } else if (release_announced(send.transfer) != nullptr) {
    control_lane_.send(wire::Withdraw{.transfer = send.transfer}, send.group);
  } else {
    outgoing_.cancel(send.transfer);
  }
  const GroupId group = send.group;
  finish(send, cancelled);
  if (link_ != nullptr) drain(group, outbox(group));
}

}  // namespace nexar::mesh
