#include "runtime/collective_state.h"

#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "base/hash.h"
#include "plan/phases.h"
#include "runtime/program.h"

namespace nexar::runtime {
namespace {

using enum OperationId;

Error invalid(std::string sentence) { return Error(ErrorCode::kInvalidArgument, std::move(sentence)); }

bool overlap(const void* a, std::uint64_t a_bytes, const void* b, std::uint64_t b_bytes) {
  const auto a_first = reinterpret_cast<std::uintptr_t>(a);
  const auto b_first = reinterpret_cast<std::uintptr_t>(b);
  return a_bytes > 0 && b_bytes > 0 && a_first < b_first + b_bytes && b_first < a_first + a_bytes;
}

const void* at(const void* buffer, std::uint64_t bytes) { return static_cast<const std::byte*>(buffer) + bytes; }

// Whether the buffers lie as the shape allows it in place.
bool lies_in_place(plan::Shape shape, const void* send, const void* recv) {
  shape.in_place = true;
  const std::uint64_t size = shape.element_bytes;
  switch (shape.alias()) {
    case plan::Alias::kNone: return false;
    case plan::Alias::kSame: return send == recv;
    case plan::Alias::kInputInOutput: return recv != nullptr && send == at(recv, shape.output_slots().piece(shape.rank).first * size);
    case plan::Alias::kOutputInInput: return send != nullptr && recv == at(send, shape.input_slots().piece(shape.rank).first * size);
  }
  return false;
}

// The engine's from here until it has ended.
void count(GroupRecord& group, CollectiveState& state) {
  if (group.direct == nullptr) return;
  state.call().shared = group.direct;
  group.direct->owner().add_reason();
}

}  // namespace

CollectiveState::CollectiveState(const NodeCore& core, const GroupRecord& group, OperationId operation, const CallOptions& options)
    : core_(core), algorithm_(options.algorithm) {
  operation_.kind = OperationState::Kind::kCollective;
  operation_.collective = &call_;
  operation_.group = &group;
  call_.group = group.id;
  call_.descriptor.operation = operation;
  call_.shape.operation = operation;
  call_.shape.rank = group.rank;
  call_.shape.size = group.size();
  call_.algorithm = algorithm_;
  call_.deadline = options.deadline;
  if (!algorithm_.empty()) call_.descriptor.digest = base::hash64(algorithm_);
}

CollectiveState& CollectiveState::elements(std::uint64_t count, DataType type) {
  if (auto known = data_type_from(static_cast<std::uint8_t>(type)); !known) return refuse(std::move(known).error());
  call_.descriptor.count = count;
  call_.descriptor.dtype = type;
  call_.shape.count = count;
  call_.shape.element_bytes = static_cast<std::uint32_t>(size_of(type));
  return *this;
}

CollectiveState& CollectiveState::reduction(const Reduction& op) {
  if (call_.refusal) return *this;
  const DataType type = *call_.descriptor.dtype;
  const bool ours = op.user_op() == nullptr;
  Result<reduce::Reducer> reducer = ours ? reduce::Reducer::make(type, op.op()) : reduce::Reducer::make(type, *op.user_op());
  if (!reducer) return refuse(std::move(reducer).error());
  call_.reducer = *std::move(reducer);
  call_.descriptor.user_op = !ours;
  if (ours) {
    call_.op = op.op();
    call_.descriptor.op = op.op();
    call_.shape.average = op.op() == ReduceOp::kAvg;
  } else {
    call_.shape.ordered = !op.user_op()->commutes;
    call_.descriptor.digest = base::hash64(algorithm_ + '/' + op.user_op()->name);
    if (call_.shape.operation == kExclusiveScan)
      return refuse(Error(ErrorCode::kUnsupported,
                          fmt::format("exclusive_scan by user op {}: it has no neutral element for rank 0", op.user_op()->name)));
  }
  call_.shape.reproducible = core_.config().reproducible;
  return *this;
}

CollectiveState& CollectiveState::root(Rank root) {
  call_.shape.root = root;
  call_.descriptor.root = root;
  return *this;
}

CollectiveState& CollectiveState::send_counts(std::span<const std::uint64_t> counts) {
  call_.shape.send_counts.assign(counts.begin(), counts.end());
  return *this;
}

CollectiveState& CollectiveState::receive_counts(std::span<const std::uint64_t> counts) {
  call_.shape.receive_counts.assign(counts.begin(), counts.end());
  return *this;
}

CollectiveState& CollectiveState::buffers(const void* send, void* recv) {
  if (call_.refusal) return *this;
  if (auto checked = call_.shape.check(); !checked) return refuse(std::move(checked).error());
  call_.shape.in_place = lies_in_place(call_.shape, send, recv);
  check_buffers(send, recv);
  call_.input = send;
  call_.output = recv;
  return *this;
}

CollectiveState& CollectiveState::pieces(std::span<const collective::Piece> pieces) {
  if (call_.refusal) return *this;
  if (auto checked = call_.shape.check(); !checked) return refuse(std::move(checked).error());
  call_.shape.in_place = true;
  call_.pieces = pieces;
  return *this;
}

void CollectiveState::check_buffers(const void* send, const void* recv) {
  const plan::Shape& shape = call_.shape;
  const std::string_view name = to_string(shape.operation);
  const bool one_buffer = shape.operation == kBroadcast;
  const std::uint64_t send_bytes = one_buffer ? 0 : shape.input_count() * shape.element_bytes;
  const std::uint64_t recv_bytes = shape.output_count() * shape.element_bytes;
  if (send == nullptr && send_bytes > 0)
    refuse(invalid(fmt::format("{}: the buffer to send from is null, and {} bytes long", name, send_bytes)));
  else if (recv == nullptr && recv_bytes > 0)
    refuse(invalid(fmt::format("{}: the buffer to receive in is null, and {} bytes long", name, recv_bytes)));
  else if (!shape.in_place && overlap(send, send_bytes, recv, recv_bytes))
    refuse(invalid(fmt::format("{}: the buffers overlap in a way that is not in place", name)));
}

CollectiveState& CollectiveState::halves(void* buffer, MiddleFunction middle) {
  if (call_.refusal) return *this;
  if (auto checked = plan::scatter_and_gather(call_.shape); !checked) return refuse(std::move(checked).error());
  if (buffer == nullptr && call_.shape.count > 0) return refuse(invalid("all_reduce_rs_ag: the buffer is null, and has elements"));
  middle_ = std::move(middle);
  call_.middle = &middle_;
  call_.output = buffer;
  return *this;
}

CollectiveState& CollectiveState::strings(std::span<const std::byte> bytes) {
  call_.descriptor.count = bytes.size();
  call_.bytes = bytes;
  call_.bytes_max = core_.config().memory_budget;
  if (auto checked = plan::lengths_phase(call_.shape); !checked) return refuse(std::move(checked).error());
  return *this;
}

CollectiveState& CollectiveState::refuse(Error error) {
  if (!call_.refusal) call_.refusal = std::move(error);
  return *this;
}

Error concurrent(const GroupRecord& group, std::string_view call) {
  return invalid(
      fmt::format("{} was called on rank {} of a group while another collective of the same group was being called; they are "
                  "called one after the other",
                  call, group.rank));
}

Result<void> run_state(NodeCore& core, GroupRecord& group, CollectiveState& state) {
  count(group, state);
  Result<Status> result = core.run(state.operation(), std::nullopt);
  if (!result) return std::move(result).error();
  return {};
}

Result<void> run_described(NodeCore& core, GroupRecord& group, OperationId operation, const CallOptions& options, const Describe& describe,
                           const Use& use) {
  if (auto checked = core.check_call(to_string(operation)); !checked) return checked;
  const CallTurn turn(group);
  if (!turn) return concurrent(group, to_string(operation));
  CollectiveState state(core, group, operation, options);
  describe(state);
  if (auto result = run_state(core, group, state); !result) return result;
  if (use) use(state.call());
  return {};
}

Operation start_described(const std::shared_ptr<NodeCore>& core, GroupRecord& group, OperationId operation, const CallOptions& options,
                          const Describe& describe) {
  const auto failed = [](Error error) {
    auto state = std::make_shared<OperationState>();
    state->result.emplace(std::move(error));
    state->completion.complete();
    return Operation(std::move(state));
  };
  const bool of_program = CallOfProgram::take();
  std::optional<CallTurn> turn;
  if (!of_program) {
    if (auto checked = core->check_call(to_string(operation)); !checked) return failed(std::move(checked).error());
    if (!turn.emplace(group)) return failed(concurrent(group, to_string(operation)));
  }
  auto state = std::make_shared<CollectiveState>(*core, group, operation, options);
  describe(*state);
  std::shared_ptr<OperationState> handle(state, &state->operation());
  handle->core = core;
  count(group, *state);
  if (of_program)
    core->begin_for_program(*handle);
  else
    core->start(*handle);
  return Operation(std::move(handle));
}

}  // namespace nexar::runtime
