// Walks one plan.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "collective/pieces.h"
#include "mesh/step.h"
#include "nexar/reduce_op.h"
#include "nexar/result.h"
#include "plan/plan.h"
#include "reduce/reducer.h"
#include "wire/operation_messages.h"

namespace nexar::collective {

// Receives of one plan that are granted ahead of their dependencies at a time: more than are ever on their way together, few enough that
// the grants of a long plan do not fill the control lane.
inline constexpr std::uint32_t kAheadMax = 64;

// Executes the steps of a plan as their dependencies are done: computes, and posts sends and receives to a port. Receives that may be
// granted ahead are posted at once. After the first run nothing is allocated for a plan that is not larger.
//
// Thread: engine. Owned by an Operation, which passes on what the port says.
class PlanRun {
 public:
  struct Task {
    std::shared_ptr<const plan::Plan> plan;
    const std::byte* input = nullptr;  // written only where the plan's alias says so
    std::byte* output = nullptr;
    std::span<const Piece> pieces{};  // instead of both, of a plan whose input is its output
    std::byte* staging = nullptr;     // staging_bytes() of it
    std::byte* scratch = nullptr;
    const reduce::Reducer* reducer = nullptr;  // null where nothing is reduced
    std::optional<ReduceOp> op{};              // whose neutral element is filled in
    std::span<const Rank> members;             // the rank in the world of each rank of the plan
    mesh::StepPort* port = nullptr;
    mesh::StepOperation* operation = nullptr;
  };

  // Memory that a run over pieces needs for what it has to send out of one place. The list is of the plan's length.
  static std::uint64_t staging_bytes(const plan::Plan& plan, std::span<const Piece> pieces);

  // Everything that the task names outlives the run. The run may be done, or have failed, when this returns.
  void start(Task task);

  // What the port says.
  void take(mesh::StepReceive& receive, std::uint64_t offset, base::ByteView bytes);
  void on_sent(const mesh::StepSend& send);
  void on_received(const mesh::StepReceive& receive);

  // After each of the above: whether there is nothing left to do, and what went wrong, if anything.
  bool is_done() const { return task_.plan != nullptr && left_ == 0; }
  const std::optional<Error>& error() const { return error_; }

  // Whether one of these calls is under way, further up the stack: then what the run has come to is looked at when it returns.
  bool is_walking() const { return walking_; }

  // Begins nothing more; the first error stays.
  void fail(const Error& error) {
    if (!error_) error_ = error;
  }

  // How far it is, and whom it waits for: a rank of the group. Of no plan: nothing.
  wire::Progress progress() const;

  // Ranks of the group that it waits for now.
  void waits_for(std::vector<Rank>& ranks) const;

  // Forgets the plan; memory stays for the next one. The operation has left the port.
  void reset();

 private:
  // An element of which a part has come: the first bytes are here, the next one is byte `end` of its message.
  struct Fragment {
    const mesh::StepReceive* receive;
    std::uint64_t end;
    std::uint32_t bytes;
    alignas(8) std::array<std::byte, 8> element;
  };

  std::byte* at(plan::Buffer buffer, std::uint64_t first) const;
  std::byte* at(const plan::Slice& slice) const;  // null when it does not lie in one piece
  void prepare();
  void post(std::uint32_t number);
  void post_ahead();
  void walk();
  void begin(std::uint32_t number);
  Result<void> compute(const plan::Step& step);
  Result<void> compute_stretch(const plan::Step& step, std::byte* into, std::uint64_t offset, std::uint64_t count);
  void copy(const plan::Slice& from, std::byte* into, bool past_cache) const;
  Result<void> reduce_many(const plan::Step& step, std::byte* into, std::uint64_t offset, std::uint64_t count);
  void finish(std::uint32_t number);
  void take_elements(const mesh::StepReceive& receive, std::uint64_t offset, base::ByteView bytes);
  base::ByteView complete_fragment(const mesh::StepReceive& receive, std::uint64_t& offset, base::ByteView bytes);
  void combine(const plan::Step& step, std::uint64_t element, const std::byte* values, std::uint64_t count);
  void combine_aligned(const plan::Step& step, std::uint64_t element, const std::byte* values, std::uint64_t count);
  void combine_stretch(const plan::Step& step, const std::byte* own, const std::byte* values, std::byte* into, std::uint64_t count);

  bool lies_in_pieces(plan::Buffer buffer) const {
    return !task_.pieces.empty() && (buffer == plan::Buffer::kInput || buffer == plan::Buffer::kOutput);
  }
  PieceList pieces() const { return {task_.pieces, task_.plan->shape.count, task_.plan->shape.element_bytes}; }

  // Calls work(memory, offset, count) for each stretch of a slice that lies in one piece; `offset` of its elements come before.
  template <typename Work>
  void for_each_stretch(const plan::Slice& slice, Work work) const;

  // plan_run_pieces.cc
  void list_regions();
  void gather(const plan::Step& step, mesh::StepSend& send);

  Task task_;
  std::vector<std::uint32_t> waiting_;  // how many steps each step waits for
  std::vector<std::uint32_t> message_;  // where each step's message is in the next two
  std::vector<mesh::StepSend> sends_;
  std::vector<mesh::StepReceive> receives_;
  std::vector<ConstRegion> regions_;  // of sends out of several pieces
  std::vector<std::uint32_t> ready_;  // steps whose dependencies are done, in that order
  std::size_t next_ready_ = 0;
  bool walking_ = false;
  std::uint32_t next_ahead_ = 0;  // no step before it is a receive that could be posted ahead
  std::uint32_t open_ahead_ = 0;  // posted ahead and not done
  std::size_t left_ = 0;          // steps
  std::uint64_t bytes_done_ = 0;  // of messages
  std::optional<Error> error_;
  std::vector<Fragment> fragments_;  // as many as a large message has runs
  std::vector<const void*> sources_;
};

}  // namespace nexar::collective
