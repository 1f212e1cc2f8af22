// One collective in flight: its plans, its sequence number, and what is known of the other ranks in it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/time.h"
#include "collective/call.h"
#include "collective/direct_group.h"
#include "collective/group_state.h"
#include "collective/outcome.h"
#include "collective/plan_run.h"
#include "collective/scratch_pool.h"
#include "collective/stages.h"
#include "mesh/step.h"
#include "nexar/buffer_pool.h"
#include "plan/planner.h"
#include "wire/operation_messages.h"

namespace nexar::collective {

// How long nothing may come before the sources are asked what they do: longer than any scheduling delay that is no problem.
inline constexpr base::Duration kProbeAfter = std::chrono::milliseconds(50);

struct Timeouts {
  base::Duration entry = std::chrono::minutes(10);
  base::Duration progress = std::chrono::seconds(30);
};

// Thread: engine. Owned by Collectives, which uses it again for another call.
class Operation final : private mesh::StepOwner, private DirectGroup::Member {
 public:
  // What an operation needs of those around it.
  struct Surroundings {
    mesh::StepPort& port;
    plan::Planner& planner;
    ScratchPool& scratch;
    const std::shared_ptr<BufferPool>& pool;
    const Timeouts& timeouts;
    // A rank of the world whose words make no sense.
    std::function<void(Rank, const std::string&)> expel;
    // The operation is over and may be used again: the last thing that it does.
    std::function<void(Operation&, Result<void>)> ended;
  };

  explicit Operation(Surroundings& around) : around_(around) {}
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // Ends perhaps before it returns. A rank that is late may have everything that it needs and yet come to what others have given up, of
  // which their verdicts are still on their way: then it does not succeed before those whose messages wait for it have been asked.
  void begin(Call& call, GroupState& group, Sequence sequence, base::Time now, bool is_late);

  // Out of use, until it begins again.
  void release() { call_ = nullptr; }

  Sequence sequence() const { return steps_.sequence; }
  Call& call() const { return *call_; }
  GroupState& group() const { return *group_; }
  wire::Progress progress() const { return in_memory_ ? group_->direct->progress(*this) : run_.progress(); }

  // After it has ended without success: whether others may still read the user's memory.
  bool has_lent() const { return lent_; }

  // Ends it for a reason of this rank's, which the others are told.
  void fail(const Error& error);
  // Ends it because another rank has; nobody is told.
  void end_with(const Error& verdict);

  // What other ranks of the group say about themselves.
  void on_probe(Rank from, const wire::Probe& probe);
  void on_reply(Rank from, const wire::ProbeReply& reply);

  // Asks, and ends what has taken too long (operation_watch.cc). Returns when to be called next; it may have ended.
  base::Time tick(base::Time now);

 private:
  // mesh::StepOwner
  void take(mesh::StepReceive& receive, std::uint64_t offset, base::ByteView bytes) override;
  void on_sent(mesh::StepSend& send) override;
  void on_received(mesh::StepReceive& receive) override;
  void on_progress() override { moved_ = true; }
  void on_disagreement(Rank peer) override;
  void on_other_size(Rank peer, std::uint64_t theirs, std::uint64_t ours) override;
  void on_failed(const Error& error) override;

  // DirectGroup::Member (operation_direct.cc)
  bool waits_for(Rank rank) override;
  void on_direct_end(DirectEnd end) override;

  // operation_direct.cc
  bool goes_by_memory();
  void settle_by_messages(Rank rank);

  void check();
  void next_stage();
  Result<void> start(Stage stage);
  void end(Result<void> result, bool tell);

  // operation_watch.cc
  void ask(Rank rank);
  void ask_those_waited_for();
  void ask_early_ones();
  void heard_of(Rank rank);
  void learn(Rank rank, wire::OperationState state, const wire::Progress& progress);
  Seen& seen(Rank rank);
  bool somebody_is_missing() const;
  base::Duration probe_interval() const;

  Surroundings& around_;
  Call* call_ = nullptr;  // null while it is not in use
  GroupState* group_ = nullptr;
  mesh::StepOperation steps_;
  Stages stages_;
  PlanRun run_;
  ScratchPool::Block scratch_;
  BufferPool::Lease staging_;  // of a run over pieces
  bool begun_ = false;         // past enter(): failures end it at once

  bool in_memory_ = false;              // it runs in the group's area
  direct::Call direct_call_{};          // then
  std::uint64_t moves_seen_ = 0;        // of all that are in the area
  std::optional<Rank> settles_with_{};  // it is over there, for a reason that this rank knows
  bool lent_ = false;                   // it did not succeed there, and others may still read memory that it has lent

  bool moved_ = false;  // since the last tick
  base::Time last_moved_{};
  base::Time next_probe_{};
  std::optional<base::Time> deadline_;
  std::vector<Seen> seen_;  // of ranks that were asked or have asked
  std::vector<Rank> waited_for_;
  std::vector<Rank> unheard_;      // of those who were before this rank: asked, and not heard of yet
  bool waits_to_succeed_ = false;  // for them alone
};

}  // namespace nexar::collective
