// A collective from its call until its result is taken: the operation, and what is called.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "collective/call.h"
#include "nexar/group.h"
#include "nexar/operation.h"
#include "runtime/group_record.h"
#include "runtime/node_core.h"
#include "runtime/operation_state.h"

namespace nexar::runtime {

// On the stack of a blocking call, or kept by its Operation. Stays where it is.
class CollectiveState {
 public:
  CollectiveState(const NodeCore& core, const GroupRecord& group, OperationId operation, const CallOptions& options);
  CollectiveState(const CollectiveState&) = delete;
  CollectiveState& operator=(const CollectiveState&) = delete;

  OperationState& operation() { return operation_; }
  collective::Call& call() { return call_; }

  // What the call is about; each may be left out where the operation has no such thing. Then one of the last four.
  CollectiveState& elements(std::uint64_t count, DataType type);
  CollectiveState& reduction(const Reduction& op);
  CollectiveState& root(Rank root);
  CollectiveState& send_counts(std::span<const std::uint64_t> counts);
  CollectiveState& receive_counts(std::span<const std::uint64_t> counts);

  // Buffers of a call that has one plan: checked, and whether they are in place found out.
  CollectiveState& buffers(const void* send, void* recv);
  // The same of an all_reduce in place of a buffer in pieces, of which the list is looked at until it has ended.
  CollectiveState& pieces(std::span<const collective::Piece> pieces);
  // The buffer of all_reduce_rs_ag.
  CollectiveState& halves(void* buffer, MiddleFunction middle);
  // What this rank gives of byte strings.
  CollectiveState& strings(std::span<const std::byte> bytes);
  // An error in the arguments that was found outside.
  CollectiveState& refuse(Error error);

 private:
  void check_buffers(const void* send, const void* recv);

  const NodeCore& core_;
  OperationState operation_;
  collective::Call call_;
  std::string algorithm_;
  MiddleFunction middle_;
};

// What is said to a thread that calls while another does.
Error concurrent(const GroupRecord& group, std::string_view call);

// Gives a call that has been described to the engine, and waits for its end.
Result<void> run_state(NodeCore& core, GroupRecord& group, CollectiveState& state);

using Describe = std::function<void(CollectiveState&)>;
using Use = std::function<void(collective::Call&)>;
Result<void> run_described(NodeCore& core, GroupRecord& group, OperationId operation, const CallOptions& options, const Describe& describe,
                           const Use& use);
Operation start_described(const std::shared_ptr<NodeCore>& core, GroupRecord& group, OperationId operation, const CallOptions& options,
                          const Describe& describe);

// Runs a call that `describe(CollectiveState&)` fills in, and waits for it. `use` takes its results. The functions are passed on by
// reference: a small collective allocates nothing.
template <typename F>
Result<void> run_collective(NodeCore& core, GroupRecord& group, OperationId operation, const CallOptions& options, const F& describe,
                            const Use& use = nullptr) {
  return run_described(core, group, operation, options, std::cref(describe), use);
}

// The same without waiting.
template <typename F>
Operation start_collective(const std::shared_ptr<NodeCore>& core, GroupRecord& group, OperationId operation, const CallOptions& options,
                           const F& describe) {
  return start_described(core, group, operation, options, std::cref(describe));
}

}  // namespace nexar::runtime
