// What a node knows of the collectives of one group.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/time.h"
#include "collective/direct_group.h"
#include "mesh/message.h"
#include "nexar/error.h"
#include "nexar/ids.h"
#include "plan/hosts.h"
#include "wire/call.h"

namespace nexar::collective {

class Operation;

// Operations of a group whose end is remembered, for those who come late and ask. Others then learn only that it is over.
inline constexpr std::size_t kEndedMax = 64;

// Operations in flight on one group. A caller that does not wait for so many has lost sight of them.
inline constexpr std::size_t kInFlightMax = 4096;

// How an operation ended here.
struct Ended {
  Sequence sequence = 0;                       // 0: nothing is remembered here
  std::optional<wire::CallDescriptor> call{};  // nothing of one that was wrong in itself
  std::optional<Error> verdict{};              // as the others were told; nothing after success
};

// Thread: engine, but for last_entered, which is raised by whoever runs the group's calls. Owned by Collectives.
struct GroupState {
  mesh::GroupId id = 0;
  std::vector<Rank> members;               // ranks of the world
  Rank self = 0;                           // this node's rank in the group
  plan::Hosts hosts{};                     // of the members, as plans see them
  std::atomic<Sequence> last_entered = 0;  // sequence numbers begin with 1
  std::unique_ptr<DirectGroup> direct{};   // null where members do not share memory
  std::vector<Operation*> running{};       // in the order of their numbers
  std::vector<Ended> ended{};              // by number modulo kEndedMax, as far as there were any: many groups are used once
  base::Time last_active{};                // when a call last ended here

  Rank size() const { return static_cast<Rank>(members.size()); }
  std::optional<Rank> rank_of(Rank world_rank) const;
  Operation* find(Sequence sequence) const;  // null when it does not run
  void remember(Ended one);
  const Ended* recall(Sequence sequence) const;  // null when it is forgotten
};

}  // namespace nexar::collective
