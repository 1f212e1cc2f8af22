#include "collective/network.h"

#include <algorithm>
#include <utility>

#include "mesh/regions.h"

namespace nexar::collective::test {

using mesh::StepOperation;
using mesh::StepReceive;
using mesh::StepSend;

namespace {

// Bytes of a message, where they are, or copied to `copy` when it lies in several places.
base::ByteView bytes_of(const StepSend& send, std::uint64_t offset, std::uint64_t bytes, std::vector<std::byte>& copy) {
  if (send.regions.empty()) return {static_cast<const std::byte*>(send.data.data) + offset, static_cast<std::size_t>(bytes)};
  copy.resize(static_cast<std::size_t>(bytes));
  mesh::RegionCursor<ConstRegion> from = mesh::RegionIndex<ConstRegion>(send.regions).at(offset);
  mesh::read(from, copy);
  return copy;
}

}  // namespace

StepOperation* MemoryPort::find(mesh::GroupId group, Sequence sequence) {
  const auto found = operations_.find({group, sequence});
  return found == operations_.end() ? nullptr : found->second;
}

void MemoryPort::early_sources(const StepOperation& operation, std::vector<Rank>& peers) const {
  for (const Kept& message : kept_)
    if (message.group == operation.group && message.sequence == operation.sequence) peers.push_back(message.from);
}

void MemoryPort::enter(StepOperation& operation) {
  operations_[{operation.group, operation.sequence}] = &operation;
  last_entered_[operation.group] = operation.sequence;
  std::erase_if(kept_, [&](const Kept& one) {
    if (one.group != operation.group || one.sequence != operation.sequence || one.fingerprint == operation.fingerprint) return false;
    operation.owner->on_disagreement(one.from);
    return true;
  });
}

void MemoryPort::send(StepOperation& operation, StepSend& send) {
  if (send.data.bytes > network_.eager_bytes_) {
    send.state = StepSend::State::kWaiting;
    operation.sends.push_back(&send);
    network_.match(self_, operation, send);
    return;
  }
  std::vector<std::byte> copy;
  const base::ByteView bytes = bytes_of(send, 0, send.data.bytes, copy);
  Kept message{self_, operation.sequence, operation.group, send.part, operation.fingerprint, {bytes.begin(), bytes.end()}};
  network_.actions_.push_back([this, to = send.peer, message = std::move(message)] { network_.port(to).arrive(message); });
  send.state = StepSend::State::kDone;
  operation.owner->on_sent(send);
}

void MemoryPort::arrive(Kept message) {
  if (verdict_) return;
  if (StepOperation* operation = find(message.group, message.sequence); operation != nullptr) {
    if (message.fingerprint != operation->fingerprint) return operation->owner->on_disagreement(message.from);
    if (offer(*operation, message)) return;
  } else if (message.sequence <= last_entered_[message.group]) {
    return;
  }
  kept_.push_back(std::move(message));
}

bool MemoryPort::offer(StepOperation& operation, const Kept& message) {
  const auto found = std::find_if(operation.receives.begin(), operation.receives.end(),
                                  [&](const StepReceive* one) { return one->peer == message.from && one->part == message.part; });
  if (found == operation.receives.end()) return false;
  StepReceive& receive = **found;
  operation.receives.erase(found);
  deliver(operation, receive, message.bytes);
  return true;
}

void MemoryPort::deliver(StepOperation& operation, StepReceive& receive, const std::vector<std::byte>& bytes) {
  if (bytes.size() != receive.bytes) return operation.owner->on_other_size(receive.peer, bytes.size(), receive.bytes);
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t piece = 1 + network_.random()() % (bytes.size() - at);
    operation.owner->take(receive, at, base::ByteView(bytes).subspan(at, piece));
    at += piece;
  }
  receive.state = StepReceive::State::kDone;
  operation.owner->on_received(receive);
}

void MemoryPort::receive(StepOperation& operation, StepReceive& receive) {
  receive.state = StepReceive::State::kPosted;
  const auto kept = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& one) {
    return one.group == operation.group && one.sequence == operation.sequence && one.from == receive.peer && one.part == receive.part;
  });
  if (kept != kept_.end()) {
    const Kept message = std::move(*kept);
    kept_.erase(kept);
    return deliver(operation, receive, message.bytes);
  }
  operation.receives.push_back(&receive);
  if (StepOperation* theirs = network_.port(receive.peer).find(operation.group, operation.sequence); theirs != nullptr)
    for (StepSend* send : theirs->sends)
      if (send->peer == self_ && send->part == receive.part) return network_.match(receive.peer, *theirs, *send);
}

void MemoryPort::leave(StepOperation& operation) {
  operations_.erase({operation.group, operation.sequence});
  operation.sends.clear();
  operation.receives.clear();
  network_.drop(operation);
  std::erase_if(kept_, [&](const Kept& one) { return one.group == operation.group && one.sequence == operation.sequence; });
}

void MemoryPort::tell(Rank peer, mesh::GroupId group, const wire::Verdict& verdict) {
  network_.actions_.push_back([this, peer, group, verdict] { network_.rank(peer).on_verdict(group, verdict); });
}
void MemoryPort::tell(Rank peer, mesh::GroupId group, const wire::Probe& probe) {
  network_.actions_.push_back([this, peer, group, probe] { network_.rank(peer).on_probe(self_, group, probe); });
}
void MemoryPort::tell(Rank peer, mesh::GroupId group, const wire::ProbeReply& reply) {
  if (is_mute) return;
  network_.actions_.push_back([this, peer, group, reply] { network_.rank(peer).on_reply(self_, group, reply); });
}

void MemoryPort::revoke(const Error& verdict) {
  verdict_ = verdict;
  while (!operations_.empty()) operations_.begin()->second->owner->on_failed(verdict);
}

Network::Network(Rank size, std::uint64_t seed, std::uint64_t eager_bytes, const Timeouts& timeouts, const plan::Hosts& hosts)
    : random_(seed), eager_bytes_(eager_bytes), wake_(static_cast<std::size_t>(size), base::Time::max()) {
  std::vector<Rank> members;
  for (Rank rank = 0; rank < size; ++rank) members.push_back(rank);
  for (Rank rank = 0; rank < size; ++rank) {
    ports_.push_back(std::make_unique<MemoryPort>(*this, rank));
    auto wake_at = [this, rank](base::Time time) { wake_[static_cast<std::size_t>(rank)] = time; };
    ranks_.push_back(std::make_unique<Collectives>(Collectives::Environment{*ports_.back(), [this] { return now_; }, wake_at, pool},
                                                   plan::Chooser(), timeouts));
    ranks_.back()->add_group(kGroup, members, rank, hosts);
  }
}

void Network::match(Rank from, StepOperation& operation, StepSend& send) {
  StepOperation* theirs = port(send.peer).find(operation.group, operation.sequence);
  if (theirs == nullptr) return;
  if (theirs->fingerprint != operation.fingerprint) return theirs->owner->on_disagreement(from);
  for (StepReceive* receive : theirs->receives) {
    if (receive->peer != from || receive->part != send.part || receive->state != StepReceive::State::kPosted) continue;
    if (receive->bytes != send.data.bytes) return theirs->owner->on_other_size(from, send.data.bytes, receive->bytes);
    receive->state = StepReceive::State::kArriving;
    send.state = StepSend::State::kGranted;
    const std::uint64_t half = receive->bytes / 128 * 64;
    transfers_.push_back({from, send.peer, &operation, &send, theirs, receive, {0, half}, {half, receive->bytes}});
    return;
  }
}

void Network::move_some(std::size_t index) {
  Transfer& transfer = transfers_[index];
  const int run = transfer.at[1] == transfer.end[1] || (transfer.at[0] < transfer.end[0] && random_() % 2 == 0) ? 0 : 1;
  const std::uint64_t left = transfer.end[run] - transfer.at[run];
  const std::uint64_t piece = 1 + random_() % left;
  const std::uint64_t offset = transfer.at[run];
  transfer.at[run] += piece;
  std::vector<std::byte> copy;
  transfer.receiver->owner->take(*transfer.receive, offset, bytes_of(*transfer.send, offset, piece, copy));
  if (transfer.at[0] < transfer.end[0] || transfer.at[1] < transfer.end[1]) return;
  const Transfer ended = transfer;
  transfers_.erase(transfers_.begin() + static_cast<std::ptrdiff_t>(index));
  std::erase(ended.receiver->receives, ended.receive);
  ended.receive->state = StepReceive::State::kDone;
  const Sequence sequence = ended.sender->sequence;
  const mesh::GroupId group = ended.sender->group;
  actions_.push_back([this, ended, group, sequence] {
    StepOperation* operation = port(ended.from).find(group, sequence);
    if (operation == nullptr || std::erase(operation->sends, ended.send) == 0) return;  // it has left
    ended.send->state = StepSend::State::kDone;
    operation->owner->on_sent(*ended.send);
  });
  ended.receiver->owner->on_received(*ended.receive);
}

// A transfer ends when either end does.
void Network::drop(const StepOperation& operation) {
  std::erase_if(transfers_, [&](const Transfer& one) { return one.sender == &operation || one.receiver == &operation; });
}

void Network::run(const std::function<bool()>& until) {
  while ((!actions_.empty() || !transfers_.empty()) && !until()) {
    const std::size_t choice = random_() % (actions_.size() + transfers_.size());
    if (choice >= actions_.size()) {
      move_some(choice - actions_.size());
      continue;
    }
    std::swap(actions_[choice], actions_.back());
    const std::function<void()> action = std::move(actions_.back());
    actions_.pop_back();
    action();
  }
}

void Network::pass(base::Duration time) {
  const base::Time end = now_ + time;
  run();
  for (;;) {
    const auto next = std::min_element(wake_.begin(), wake_.end());
    if (*next > end) break;
    now_ = std::max(now_, *next);
    *next = base::Time::max();
    rank(static_cast<Rank>(next - wake_.begin())).tick();
    run();
  }
  now_ = end;
}

}  // namespace nexar::collective::test
