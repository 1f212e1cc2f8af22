// A group as its handles see it: who is in it, and which rank this node has.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "collective/direct_group.h"
#include "mesh/message.h"
#include "nexar/ids.h"

namespace nexar::runtime {

// The group of all ranks.
inline constexpr mesh::GroupId kWorldGroup = 1;

// How much longer than for a message a thread polls for ranks of its host, with the core on offer meanwhile. When many ranks wait for one
// that sleeps, its wake-up makes the others sleep as well, and so for ever: sixteen ranks on as many cores took 240 us instead of 1.4 for
// eight bytes. Ten milliseconds are longer than a core that they share with another program, or with another virtual machine, is usually
// taken away for; a core that is let go meanwhile may be gone as well. Where ranks outnumber cores somebody else needs it.
inline constexpr int kSpinsForHost = 50;
inline constexpr int kCrowdedSpinsForHost = 5;

// Owned by the node. Thread: any; nothing but the last two members changes once others have it.
struct GroupRecord {
  GroupRecord(mesh::GroupId group, std::vector<Rank> ranks, Rank self) : id(group), members(std::move(ranks)), rank(self) {}

  int size() const { return static_cast<int>(members.size()); }
  // How many times Config::spin a thread that waits for its members polls.
  int spins() const { return direct == nullptr ? 1 : direct->spin().crowded ? kCrowdedSpinsForHost : kSpinsForHost; }
  bool has(Rank one) const { return one >= 0 && one < size(); }
  Rank world_rank(Rank one) const { return members[static_cast<std::size_t>(one)]; }
  std::optional<Rank> rank_of(Rank world_rank) const {
    if (id == kWorldGroup) return has(world_rank) ? std::optional(world_rank) : std::nullopt;
    const auto found = std::find(members.begin(), members.end(), world_rank);
    return found == members.end() ? std::nullopt : std::optional(static_cast<Rank>(found - members.begin()));
  }

  const mesh::GroupId id;
  const std::vector<Rank> members;            // ranks of the world
  const Rank rank;                            // this node's, here
  collective::DirectGroup* direct = nullptr;  // where its members share memory
  std::atomic<bool> calling = false;          // a thread is in a collective's call
  std::uint64_t splits = 0;                   // calls of split; of the thread that is calling
};

// A thread's turn to call a collective of a group; false when another thread has it.
class CallTurn {
 public:
  explicit CallTurn(GroupRecord& group) : group_(group.calling.exchange(true, std::memory_order_acquire) ? nullptr : &group) {}
  ~CallTurn() {
    if (group_ != nullptr) group_->calling.store(false, std::memory_order_release);
  }
  CallTurn(const CallTurn&) = delete;
  CallTurn& operator=(const CallTurn&) = delete;
  explicit operator bool() const { return group_ != nullptr; }

 private:
  GroupRecord* group_;
};

}  // namespace nexar::runtime
