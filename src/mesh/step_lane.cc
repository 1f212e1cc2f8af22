#include "mesh/step_lane.h"

#include <algorithm>

#include <fmt/format.h>

#include "mesh/steps.h"

namespace nexar::mesh {

void StepLane::begin(transport::Link& link, const EagerLimits& limits) {
  link_ = &link;
  peer_limits_ = limits;
  drain();
}

// Operations that need the peer are ended by whoever knows why it is gone.
void StepLane::end() {
  link_ = nullptr;
  operation_ = nullptr;
  receive_ = nullptr;
  kept_ = nullptr;
}

StepLane::Outgoing& StepLane::outgoing(GroupId group) {
  const auto [found, added] = outgoing_.try_emplace(group);
  if (added) {
    found->second.bytes = static_cast<std::int64_t>(peer_limits_.bytes);
    found->second.messages = peer_limits_.messages;
  }
  return found->second;
}

// Of a group that the peer names.
Result<StepLane::Incoming*> StepLane::incoming(GroupId group) {
  const auto [found, added] = incoming_.try_emplace(group);
  if (!added) return &found->second;
  if (auto admitted = around_.early_groups.admit(group); !admitted) {
    incoming_.erase(found);
    return std::move(admitted).error();
  }
  return &found->second;
}

bool StepLane::send(StepOperation& operation, StepSend& send) {
  if (link_ != nullptr) {
    Outgoing& to = outgoing(operation.group);
    const bool credit = to.messages > 0 && to.bytes >= static_cast<std::int64_t>(send.data.bytes);
    const bool wanted = !to.wants.empty() && to.wants.erase({operation.sequence, send.part}) > 0;
    if ((credit || wanted) && try_send(to, operation, send)) return true;
    to.waiting.emplace_back(&operation, &send);
    if (!credit) tell_queued(operation.group, to);
    return false;
  }
  outgoing(operation.group).waiting.emplace_back(&operation, &send);
  return false;
}

// False when the lane has no room.
bool StepLane::try_send(Outgoing& to, const StepOperation& operation, const StepSend& send) {
  const wire::EagerMessage message{
      .kind = wire::Kind::kCollective, .key = operation.sequence, .step = send.part, .fingerprint = operation.fingerprint};
  const wire::Header header =
      wire::header_of(message, {.group = operation.group, .epoch = around_.epoch}, static_cast<std::uint32_t>(send.data.bytes));
  if (!link_->send(header, {static_cast<const std::byte*>(send.data.data), send.data.bytes})) return false;
  to.bytes -= static_cast<std::int64_t>(send.data.bytes);
  --to.messages;
  return true;
}

void StepLane::forget(const StepSend& send) {
  for (auto& [group, to] : outgoing_) std::erase_if(to.waiting, [&](const auto& one) { return one.second == &send; });
}

void StepLane::drain() {
  for (auto& [group, to] : outgoing_)
    if (!to.waiting.empty()) drain(group, to);
}

// Whoever is told that a step was sent may send more, and may take back what waits.
void StepLane::drain(GroupId group, Outgoing& to) {
  while (link_ != nullptr && !to.waiting.empty()) {
    const auto [operation, send] = to.waiting.front();
    const bool credit = to.messages > 0 && to.bytes >= static_cast<std::int64_t>(send->data.bytes);
    const Named name{operation->sequence, send->part};
    if (!credit && !to.wants.contains(name)) return tell_queued(group, to);
    if (!try_send(to, *operation, *send)) return;
    to.wants.erase(name);
    to.waiting.pop_front();
    around_.steps.sent(*operation, *send);
  }
  if (link_ != nullptr && std::exchange(to.told, false))
    around_.control.send(wire::Queued{.kind = wire::Kind::kCollective, .messages = 0}, group);
}

void StepLane::tell_queued(GroupId group, Outgoing& to) {
  if (std::exchange(to.told, true)) return;
  around_.control.send(wire::Queued{.kind = wire::Kind::kCollective, .messages = static_cast<std::uint32_t>(to.waiting.size())}, group);
}

void StepLane::on_credit(GroupId group, const wire::Credit& credit) {
  const auto found = outgoing_.find(group);
  if (found == outgoing_.end()) return;  // nothing was sent there
  Outgoing& to = found->second;
  to.bytes += static_cast<std::int64_t>(credit.bytes);
  to.messages += credit.messages;
  drain(group, to);
}

// A receive of the peer waits for just this step. If there is no room for it now, it is the first to go when there is.
Result<void> StepLane::on_want(GroupId group, const wire::Want& want) {
  if (auto admitted = around_.early_groups.admit(group); !admitted) return admitted;
  Outgoing& to = outgoing(group);
  const auto waiting = std::find_if(to.waiting.begin(), to.waiting.end(),
                                    [&](const auto& one) { return one.first->sequence == want.key && one.second->part == want.step; });
  if (waiting == to.waiting.end()) {
    if (around_.steps.is_over(group, want.key)) return {};
    if (to.wants.size() >= to.look_at) {  // rarely: whoever asks for many does not make us walk them each time
      std::erase_if(to.wants, [&](const Named& one) { return around_.steps.is_over(group, one.first); });
      to.look_at = std::clamp<std::size_t>(2 * to.wants.size(), 64, kWantsMax);
    }
    if (to.wants.size() >= kWantsMax)
      return Error(ErrorCode::kRefused, fmt::format("rank {} asks for more than {} steps at once", around_.rank, kWantsMax));
    to.wants.insert({want.key, want.step});
    return {};
  }
  const auto [operation, send] = *waiting;
  if (!try_send(to, *operation, *send)) {
    to.wants.insert({want.key, want.step});
    std::rotate(to.waiting.begin(), waiting, waiting + 1);
    return {};
  }
  to.waiting.erase(waiting);
  around_.steps.sent(*operation, *send);
  return {};
}

Result<void> StepLane::on_queued(GroupId group, const wire::Queued& queued) {
  const Result<Incoming*> from = incoming(group);
  if (!from) return from.error();
  (*from)->sender_queues = queued.messages > 0;
  if ((*from)->sender_queues) around_.steps.want_all(group, around_.rank);
  return {};
}

void StepLane::want(const StepOperation& operation, StepReceive& receive) {
  const auto found = incoming_.find(operation.group);
  if (found == incoming_.end() || !found->second.sender_queues || std::exchange(receive.wanted, true)) return;
  found->second.wanted_bytes += receive.bytes;
  ++found->second.wanted_messages;
  around_.control.send(wire::Want{.kind = wire::Kind::kCollective, .key = operation.sequence, .step = receive.part}, operation.group);
}

Result<transport::Sink*> StepLane::on_frame(const wire::Header& header) {
  const Result<wire::EagerMessage> message = wire::read_header<wire::EagerMessage>(header);
  if (!message) return message.error();
  const Result<Incoming*> named = incoming(header.group);
  if (!named) return named.error();
  Incoming& from = **named;
  from.outstanding_bytes += header.length;
  ++from.outstanding_messages;
  if (from.outstanding_bytes > around_.limits.bytes + from.wanted_bytes + from.due_bytes ||
      from.outstanding_messages > around_.limits.messages + from.wanted_messages + from.due_messages)
    return Error(ErrorCode::kRefused, fmt::format("rank {} sent more than its credit of {} bytes and {} messages in a group's collectives",
                                                  around_.rank, around_.limits.bytes, around_.limits.messages));
  received_ = 0;
  const Steps::Place place = around_.steps.place(around_.rank, header.group, *message, header.length);
  operation_ = place.operation;
  receive_ = place.receive;
  kept_ = place.kept;
  return receive_ != nullptr || kept_ != nullptr ? this : nullptr;
}

void StepLane::take(base::ByteView bytes) {
  if (receive_ != nullptr)
    operation_->owner->take(*receive_, received_, bytes);
  else if (kept_ != nullptr)
    kept_->content.insert(kept_->content.end(), bytes.begin(), bytes.end());
  received_ += bytes.size();
}

Result<void> StepLane::on_frame_end(const wire::Header& header) {
  StepReceive* receive = std::exchange(receive_, nullptr);
  KeptStep* kept = std::exchange(kept_, nullptr);
  if (kept != nullptr) {
    around_.steps.kept_whole(*kept);
    return {};
  }
  if (receive != nullptr && receive->wanted) {
    Incoming& from = incoming_[header.group];
    from.wanted_bytes -= receive->bytes;
    --from.wanted_messages;
  }
  give_back(header.group, header.length);
  if (receive != nullptr) around_.steps.received(*operation_, *receive);
  return {};
}

void StepLane::stop(const StepReceive& receive) {
  if (receive_ == &receive) receive_ = nullptr;
}

void StepLane::stop(const KeptStep& kept) {
  if (kept_ == &kept) kept_ = nullptr;
}

// Credit goes back in portions, so that a stream of small messages does not cost a frame each.
void StepLane::give_back(GroupId group, std::uint64_t bytes) {
  Incoming& from = incoming_[group];
  from.due_bytes += bytes;
  ++from.due_messages;
  if (from.due_bytes * 2 < around_.limits.bytes && from.due_messages * 2 < around_.limits.messages) return;
  from.outstanding_bytes -= from.due_bytes;
  from.outstanding_messages -= from.due_messages;
  around_.control.send(
      wire::Credit{
          .kind = wire::Kind::kCollective, .bytes = std::exchange(from.due_bytes, 0), .messages = std::exchange(from.due_messages, 0)},
      group);
}

}  // namespace nexar::mesh
