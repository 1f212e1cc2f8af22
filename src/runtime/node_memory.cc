// Whether the members of a group share memory for its calls.
//
// Who shares memory with whom is known of every two ranks; a group uses it when each of its members shares it with all the others and has
// got the group's block of it. All must come to the same decision, so they compare what each has, by messages, before the group's first
// call.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "runtime/node_core.h"

namespace nexar::runtime {
namespace {

// The group in which members compare: it has no call of a user's.
mesh::GroupId comparing(mesh::GroupId group) { return base::hash64("memory of " + std::to_string(group)); }

// Turns of the loop look into the areas of all groups. Before they block they tell the others that they wait for something there, if they
// do, and look once more: while a caller's thread is in the area, the engine may well sleep and is not to be woken.
class DirectPoller final : public io::Poller {
 public:
  DirectPoller(collective::Collectives& collectives, collective::HostLending& lending, std::shared_ptr<transport::shm::HostSegment> segment,
               int local)
      : collectives_(collectives), lending_(lending), segment_(std::move(segment)), awaits_(segment_->rank(local).awaits) {}

  bool poll() override {
    if (lending_.is_due()) lending_.work();
    return collectives_.step_direct();
  }
  bool fall_asleep() override {
    if (!collectives_.awaits_direct()) return true;
    awaits_.store(1, std::memory_order_seq_cst);
    return !collectives_.step_direct();
  }
  void wake_up() override { awaits_.store(0, std::memory_order_relaxed); }

 private:
  collective::Collectives& collectives_;
  collective::HostLending& lending_;
  const std::shared_ptr<transport::shm::HostSegment> segment_;
  std::atomic<std::uint32_t>& awaits_;
};

}  // namespace

Result<void> NodeCore::agree_on_memory(GroupRecord& group) {
  const CallGate::Pass pass(gate_);
  if (!pass) return closed_error();
  Completion completion;
  Result<void> agreed;
  engine_->post_and_stay([&] {
    offer_memory(group, [&](Result<void> result) {
      agreed = std::move(result);
      completion.complete();
    });
  });
  engine_->wait(completion);
  return agreed;
}

// Whether it is compared at all follows from what every member knows.
void NodeCore::offer_memory(GroupRecord& group, std::function<void(Result<void>)> done) {
  const bool wanted = config_.transport == Transport::kAuto || config_.transport == Transport::kShm;
  const bool one_host = std::all_of(group.members.begin(), group.members.end(),
                                    [&](Rank member) { return places_->host_index(member) == places_->host_index(rank_); });
  if (!wanted || !one_host || !collective::DirectGroup::has_room_for(group.size())) return done({});
  if (closed_.load(std::memory_order_acquire)) return done(closed_error());

  MemoryOffer& offer = *offers_.emplace_back(std::make_unique<MemoryOffer>(MemoryOffer{group, std::move(done)}));
  const bool shared =
      std::all_of(group.members.begin(), group.members.end(), [&](Rank member) { return member == rank_ || host_->uses_memory(member); });
  if (shared) {
    const collective::direct::Layout layout = collective::DirectGroup::layout(group.size());
    if (const Result<base::ByteSpan> block = host_->segment()->block(group.id, layout.bytes())) {
      offer.block = *block;
      offer.mine = 1;
      if (group.rank == 0) layout.initialise(offer.block.data(), 1);  // the others look when they know of this rank's offer
    } else {
      log_.info("runtime", "a group's collectives go by messages", {{"why", block.error().to_string()}});
    }
  }

  collective::Call& call = offer.call;
  call.group = comparing(group.id);
  call.descriptor = {.operation = OperationId::kAllReduce, .count = 1, .dtype = DataType::kU8, .op = ReduceOp::kMin};
  call.shape.operation = OperationId::kAllReduce;
  call.shape.rank = group.rank;
  call.shape.size = group.size();
  call.shape.count = 1;
  call.shape.element_bytes = 1;
  call.op = ReduceOp::kMin;
  call.reducer = reduce::Reducer::make(DataType::kU8, ReduceOp::kMin).value();
  call.input = &offer.mine;
  call.output = &offer.all;
  call.done = [this, &offer](Result<void> result) { on_offers_compared(offer, std::move(result)); };
  collectives_->add_group(call.group, group.members, group.rank);
  collectives_->begin(call);
}

void NodeCore::on_offers_compared(MemoryOffer& offer, Result<void> result) {
  const auto found = std::find_if(offers_.begin(), offers_.end(), [&](const auto& one) { return one.get() == &offer; });
  const std::unique_ptr<MemoryOffer> kept = std::move(*found);
  offers_.erase(found);
  if (result && offer.all == 1) {
    std::vector<int> locals;
    std::vector<int> others;
    for (const Rank member : offer.group.members) {
      locals.push_back(places_->local_rank(member));
      if (member != rank_) others.push_back(locals.back());
    }
    offer.group.direct = &collectives_->share_memory(offer.group.id,
                                                     {.segment = host_->segment(),
                                                      .bells = host_->bells(),
                                                      .others = std::move(others),
                                                      .block = offer.block,
                                                      .lending = lending_->of_group(std::move(locals), offer.group.rank)},
                                                     collective::direct::Spin::where(core_share_.crowded));
    if (direct_poller_ == nullptr) {
      // After the poller that says in the segment that this process falls asleep, so that it looks later.
      direct_poller_ = std::make_unique<DirectPoller>(*collectives_, *lending_, host_->segment(), places_->local_rank(rank_));
      loop_->add_poller(*direct_poller_);
    }
  }
  offer.done(std::move(result));
}

void NodeCore::cancel_offers(const Error& error) {
  while (!offers_.empty()) collectives_->cancel(offers_.front()->call, error);
}

}  // namespace nexar::runtime
