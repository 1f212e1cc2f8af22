#include "collective/direct_group.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <utility>

#include "base/assert.h"

namespace nexar::collective {
namespace {

// Whether a rank cannot end the call before all others have begun it.
bool needs_all(const direct::Call& call, Rank rank) {
  switch (call.operation) {
    case OperationId::kAllReduce:
    case OperationId::kReduceScatter:
    case OperationId::kAllGather:
    case OperationId::kAllToAll:
    case OperationId::kBarrier: return true;
    case OperationId::kReduce:
    case OperationId::kGather: return rank == call.root;
    default: return false;
  }
}

direct::Tuning tuned(direct::Tuning tuning, direct::Spin spin) {
  if (spin.crowded) tuning.shares_by_pace = SIZE_MAX;
  return tuning;
}

}  // namespace

bool DirectGroup::supports(OperationId operation) {
  switch (operation) {
    case OperationId::kAllReduce:
    case OperationId::kReduceScatter:
    case OperationId::kAllGather:
    case OperationId::kBroadcast:
    case OperationId::kReduce:
    case OperationId::kGather:
    case OperationId::kScatter:
    case OperationId::kAllToAll:
    case OperationId::kScan:
    case OperationId::kExclusiveScan:
    case OperationId::kBarrier: return true;
    default: return false;
  }
}

DirectGroup::DirectGroup(Memory memory, Rank rank, Rank ranks, direct::Spin spin, std::atomic<Sequence>& last_entered)
    : memory_(std::move(memory)),
      bell_(memory_),
      area_(memory_.block.data(), layout(ranks), rank, &bell_, memory_.lending.get(), tuned(memory_.tuning, spin), memory_.clock),
      spin_(spin),
      last_entered_(last_entered) {}

// Whoever is asked about a number that has been entered finds the call.
Sequence DirectGroup::take_number(const wire::CallDescriptor& call) {
  const Sequence sequence = last_entered_.load(std::memory_order_relaxed) + 1;
  recent_.put(sequence, call);
  caller_.store(sequence, std::memory_order_relaxed);
  last_entered_.store(sequence, std::memory_order_release);
  return sequence;
}

DirectGroup::OthersBell::OthersBell(const Memory& memory) : bells_(memory.bells.get()) {
  for (const int local : memory.others) others_.push_back({&memory.segment->rank(local).awaits, local});
}

// What was published comes before the look at who sleeps, and whoever falls asleep looks once more after saying so.
void DirectGroup::OthersBell::ring() {
  direct::order_before_looking();
  for (const Other& other : others_)
    if (other.awaits->load(std::memory_order_seq_cst) != 0) bells_->ring(other.local);
}

bool DirectGroup::fits(const direct::Call& call) const {
  return call.count < direct::kRoundsMax / 2 ||  // not even with an element in each round
         direct::Pattern(call, area_.rank(), area_.layout(), area_.tuning()).fits();
}

void DirectGroup::enter(Member& member, const direct::Call& call, direct::Operation* begun) {
  NEXAR_ASSERT(queue_.empty() || queue_.back().sequence < call.sequence, "calls come in the order of their numbers");
  NEXAR_ASSERT(begun == nullptr || queue_.empty(), "a caller's thread runs calls while nothing is queued");
  queue_.push_back({call.sequence, &member, &call});
  if (begun != nullptr)
    running_ = begun;
  else if (queue_.size() == 1)
    begin_next();
}

// A number that ended before its turn is given up in its turn: peers take a failure for that of every call before it as well.
void DirectGroup::skip(Sequence sequence) {
  if (!queue_.empty() && queue_.back().member == nullptr)
    queue_.back().sequence = sequence;
  else
    queue_.push_back({sequence, nullptr, nullptr});
  if (running_ == nullptr) begin_next();
}

bool DirectGroup::leave(const Member& member, Sequence sequence) {
  if (is_running(member)) {
    running_->stop(direct::Outcome::kCancelled);
    const bool lent = running_->has_lent();
    running_ = nullptr;
    queue_.pop_front();
    begin_next();
    return lent;
  }
  const auto found = std::find_if(queue_.begin(), queue_.end(), [&](const Entry& entry) { return entry.member == &member; });
  if (found == queue_.end()) return false;
  NEXAR_ASSERT(found->sequence == sequence, "a member has one call");
  found->member = nullptr;
  found->call = nullptr;
  return false;
}

void DirectGroup::begin_next() {
  own_.reset();
  while (!queue_.empty() && queue_.front().member == nullptr) {
    area_.fail(queue_.front().sequence);
    area_.ring();
    queue_.pop_front();
  }
  if (!queue_.empty()) running_ = &own_.emplace(area_, *queue_.front().call);
}

bool DirectGroup::step() {
  bool moved = false;
  while (running_ != nullptr) {
    Member& member = *queue_.front().member;
    const std::uint64_t done = running_->rounds_done();
    const direct::Outcome outcome = running_->step();
    if (running_->rounds_done() != done) {
      moved = true;
      ++moves_;
    }
    if (outcome == direct::Outcome::kWaiting) {
      if (member.waits_for(running_->blocked_on())) return moved;
      moved = true;
      continue;
    }
    const Rank rank = outcome == direct::Outcome::kMismatch ? running_->mismatch().rank : running_->blocked_on();
    DirectEnd end{outcome, rank, std::move(*running_).error(), outcome != direct::Outcome::kDone && running_->has_lent()};
    running_ = nullptr;
    queue_.pop_front();
    begin_next();
    moved = true;
    member.on_direct_end(std::move(end));
  }
  return moved;
}

wire::Progress DirectGroup::progress(const Member& member) const {
  wire::Progress progress;
  if (!is_running(member)) return progress;
  const auto small = [](std::uint64_t number) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(number, std::numeric_limits<std::uint32_t>::max()));
  };
  progress.steps_done = small(running_->rounds_done());
  progress.steps_total = small(running_->rounds());
  if (running_->blocked_on() != area_.rank()) progress.waits_for = running_->blocked_on();
  return progress;
}

// Whoever has not come, and whoever holds it up.
void DirectGroup::waits_for(const Member& member, std::vector<Rank>& ranks) const {
  ranks.clear();
  if (!is_running(member)) return;
  const bool all = needs_all(running_->call(), area_.rank());
  for (Rank rank = 0; rank < area_.ranks(); ++rank) {
    const Sequence entered = area_.progress(rank).entered.load(std::memory_order_acquire);
    const bool missing = all && entered < running_->call().sequence;
    if (rank != area_.rank() && (missing || rank == running_->blocked_on())) ranks.push_back(rank);
  }
}

}  // namespace nexar::collective
