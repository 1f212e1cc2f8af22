// The large messages of collectives: granted when their receive is posted, often before their sender has them.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "mesh/peer.h"
#include "mesh/steps.h"

namespace nexar::mesh {

std::size_t Steps::Inflow::place(std::uint64_t offset, std::size_t bytes, std::span<base::ByteSpan> regions) {
  if (receive->into == nullptr || regions.empty()) return 0;
  regions[0] = {receive->into + offset, bytes};
  return 1;
}

void Steps::grant(StepOperation& operation, StepReceive& receive) {
  const std::uint64_t number = next_flow_++;
  Inflow& inflow = inflows_[number];
  inflow.operation = &operation;
  inflow.receive = &receive;
  receive.flow = number;
  receive.transfer = peer(receive.peer)
                         .incoming()
                         .grant_ahead({operation.sequence, receive.part, operation.fingerprint},
                                      {.owner = {operation.group, wire::Kind::kCollective, operation.sequence},
                                       .bytes = receive.bytes,
                                       .sink = &inflow,
                                       .done = [this, number](const Result<void>& result) { on_flowed_in(number, result); }});
}

// A sender that takes its message back has left the operation: it says why, or is asked.
void Steps::on_flowed_in(std::uint64_t number, const Result<void>& result) {
  const auto found = inflows_.find(number);
  if (found == inflows_.end()) return;
  StepOperation& operation = *found->second.operation;
  StepReceive& receive = *found->second.receive;
  inflows_.erase(found);
  receive.flow = 0;
  receive.transfer = 0;
  if (result) return received(operation, receive);
  if (result.error().code() != ErrorCode::kCancelled || verdict_) operation.owner->on_failed(result.error());
}

bool Steps::use_kept_grant(StepOperation& operation, StepSend& send) {
  Group& group = groups_[operation.group];
  const auto found = std::find_if(group.grants.begin(), group.grants.end(), [&](const KeptGrant& one) {
    return one.from == send.peer && one.part == send.part && one.sequence == operation.sequence && one.fingerprint == operation.fingerprint;
  });
  if (found == group.grants.end()) return false;
  const KeptGrant grant = *found;
  group.grants.erase(found);
  flow(operation, send, grant.transfer, grant.bytes);
  return true;
}

void Steps::on_granted(Rank from, GroupId id, const wire::Grant& grant) {
  OutgoingTransfers& outgoing = peer(from).outgoing();
  Group& group = groups_[id];
  StepOperation* operation = find(group, grant.sequence);
  if (operation == nullptr && grant.sequence <= group.last) {
    outgoing.cancel(grant.transfer);
    return;
  }
  if (operation != nullptr && grant.fingerprint != operation->fingerprint) {
    outgoing.cancel(grant.transfer);
    return operation->owner->on_disagreement(from);
  }
  if (operation != nullptr) {
    const auto send = std::find_if(operation->sends.begin(), operation->sends.end(), [&](const StepSend* one) {
      return one->peer == from && one->part == grant.step && one->state == StepSend::State::kWaiting;
    });
    if (send != operation->sends.end()) return flow(*operation, **send, grant.transfer, grant.bytes);
  }
  group.grants.push_back({from, grant.transfer, grant.sequence, grant.step, grant.bytes, grant.fingerprint});
}

void Steps::flow(StepOperation& operation, StepSend& send, std::uint64_t transfer, std::uint64_t granted) {
  OutgoingTransfers& outgoing = peer(send.peer).outgoing();
  if (granted != send.data.bytes) {
    outgoing.cancel(transfer);
    return operation.owner->on_other_size(send.peer, granted, send.data.bytes);
  }
  const std::uint64_t number = next_flow_++;
  outflows_[number] = {&operation, &send};
  if (send.data.bytes <= wire::kEagerBytesMax) peer(send.peer).steps().forget(send);
  send.state = StepSend::State::kGranted;
  send.transfer = transfer;
  send.flow = number;
  operation.owner->on_progress();
  outgoing.begin_ahead(transfer, {.owner = {operation.group, wire::Kind::kCollective, operation.sequence},
                                  .regions = send.regions.empty() ? std::span(&send.data, 1) : send.regions,
                                  .done = [this, number](const Result<void>& result) { on_flowed_out(number, result); }});
}

// A receiver that does not want it any more has left the operation.
void Steps::on_flowed_out(std::uint64_t number, const Result<void>& result) {
  const auto found = outflows_.find(number);
  if (found == outflows_.end()) return;
  const Outflow ended = found->second;
  outflows_.erase(found);
  ended.send->flow = 0;
  if (result) return sent(*ended.operation, *ended.send);
  ended.send->state = StepSend::State::kWaiting;
  if (result.error().code() != ErrorCode::kCancelled || verdict_) ended.operation->owner->on_failed(result.error());
}

void Steps::on_refused(Rank from, const wire::Refuse& refuse) {
  for (auto& [id, group] : groups_)
    if (std::erase_if(group.grants, [&](const KeptGrant& one) { return one.from == from && one.transfer == refuse.transfer; }) > 0) return;
}

void Steps::announce(StepOperation& operation) {
  for (const StepSend* send : operation.sends) {
    if (send->state != StepSend::State::kWaiting || send->data.bytes <= wire::kEagerBytesMax) continue;
    peer(send->peer)
        .announce(operation.group, {.kind = wire::Kind::kCollective,
                                    .key = operation.sequence,
                                    .step = send->part,
                                    .bytes = send->data.bytes,
                                    .fingerprint = operation.fingerprint});
  }
}

void Steps::on_announced(Rank from, GroupId group, const wire::Announce& announce) {
  StepOperation* operation = find(group, announce.key);
  if (operation == nullptr) return;
  if (announce.fingerprint != operation->fingerprint) return operation->owner->on_disagreement(from);
  const StepReceive* receive = find_receive(*operation, from, announce.step);
  if (receive != nullptr && receive->bytes != announce.bytes) operation->owner->on_other_size(from, announce.bytes, receive->bytes);
}

void Steps::stop(StepSend& send) {
  if (send.state == StepSend::State::kWaiting && send.data.bytes <= wire::kEagerBytesMax) peer(send.peer).steps().forget(send);
  if (send.state != StepSend::State::kGranted) return;
  outflows_.erase(send.flow);
  peer(send.peer).outgoing().cancel(send.transfer);
}

void Steps::stop(StepReceive& receive) {
  if (receive.transfer != 0) {
    inflows_.erase(receive.flow);
    peer(receive.peer).incoming().cancel(receive.transfer);
  } else if (receive.state == StepReceive::State::kArriving) {
    peer(receive.peer).steps().stop(receive);
  }
}

}  // namespace nexar::mesh
