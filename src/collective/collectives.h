// The collectives of a node: who is in which operation, and what becomes of it.
//
// Every call uses the next sequence number of its group, also one that fails before anything is sent. What a rank learns about operations
// that it has not entered yet is kept until it does.
//
// Thread: engine. Owned by the node; calls have ended before it goes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/time.h"
#include "collective/call.h"
#include "collective/group_state.h"
#include "collective/operation.h"
#include "collective/scratch_pool.h"
#include "mesh/step.h"
#include "nexar/buffer_pool.h"
#include "plan/planner.h"

namespace nexar::collective {

// Verdicts about operations that this rank has not entered: a rank that is so late that more have ended without it gets to know of the
// others when it asks.
inline constexpr std::size_t kEarlyVerdictsMax = 1024;

// Operations that are kept for later calls; each has some KiB, or more after a large plan. Those that end together are given up when the
// next call begins.
inline constexpr std::size_t kSpareOperationsMax = 64;

class Collectives {
 public:
  struct Environment {
    mesh::StepPort& port;
    std::function<base::Time()> now;
    std::function<void(base::Time)> wake_at;                // tick() is to be called then, and not later because of an earlier call
    std::shared_ptr<BufferPool> pool;                       // for messages that are gathered out of pieces
    std::function<void(Rank, const std::string&)> expel{};  // a rank of the world whose words in shared memory make no sense, and why
  };

  Collectives(Environment environment, const plan::Chooser& chooser, const Timeouts& timeouts);

  // A group that this node is a member of, with its members' ranks in the world in the order of their ranks here, and the hosts that plans
  // are made for, which are the same on every member. Once.
  void add_group(mesh::GroupId id, std::vector<Rank> members, Rank self, plan::Hosts hosts = {});

  // The members of a group share memory, and all of them know it: from here on calls go there where they can. Before the first call.
  DirectGroup& share_memory(mesh::GroupId id, DirectGroup::Memory memory, direct::Spin spin);

  // Does what can be done in shared memory; whether there was anything.
  bool step_direct();

  // A call that has ended without success, and is told so when nobody reads the memory any more that it has lent.
  bool is_leaving(const Call& call) const;
  // Tells all of them now: nobody is there to be waited for.
  void end_leaving();

  // Whether something is left to do there, when others have done something.
  bool awaits_direct() const;

  // The epoch is over: callers' threads do not run calls any more.
  void end_epoch();

  // The call's `done` is called once, perhaps before this returns.
  void begin(Call& call);

  // Ends a call that has not ended, and tells the others.
  void cancel(Call& call, const Error& error);

  // Frames of a peer, by its rank in the world.
  void on_verdict(mesh::GroupId group, const wire::Verdict& verdict);
  void on_probe(Rank from, mesh::GroupId group, const wire::Probe& probe);
  void on_reply(Rank from, mesh::GroupId group, const wire::ProbeReply& reply);

  // Looks after everything that waits.
  void tick();

  // The number of the last call on a group; 0 before the first.
  Sequence last_entered(mesh::GroupId group);

  std::size_t running() const { return running_.size(); }
  std::size_t spare() const { return unused_.size(); }
  plan::Planner& planner() { return planner_; }
  const ScratchPool& scratch() const { return scratch_; }

 private:
  GroupState* find(mesh::GroupId id);
  std::optional<Error> early_verdict(GroupState& group, Sequence sequence);
  void keep_early(mesh::GroupId id, GroupState* group, const wire::Verdict& verdict);
  void refuse(Call& call, GroupState& group, Sequence sequence, const Error& error);
  void watch_from(base::Time time);
  void on_ended(Operation& operation, Result<void> result);
  void finish(Call& call, GroupState& group, Sequence sequence, bool lent, Result<void> result);
  bool all_left(const GroupState& group, Sequence sequence) const;
  bool step_leaving();
  std::unique_ptr<Operation> unused();

  Environment environment_;
  const Timeouts timeouts_;
  plan::Planner planner_;
  ScratchPool scratch_;
  Operation::Surroundings around_;
  std::unordered_map<mesh::GroupId, std::unique_ptr<GroupState>> groups_;
  std::map<std::pair<mesh::GroupId, Sequence>, Error> early_verdicts_;
  std::vector<std::unique_ptr<Operation>> running_;
  std::vector<std::unique_ptr<Operation>> unused_;
  std::vector<DirectGroup*> direct_groups_;

  struct Leaving {
    Call* call;
    GroupState* group;
    Sequence sequence;
    Result<void> result;
  };
  std::vector<Leaving> leaving_;
  bool epoch_over_ = false;
  base::Time wake_at_ = base::Time::max();
};

}  // namespace nexar::collective
