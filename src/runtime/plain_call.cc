#include "runtime/plain_call.h"

#include <chrono>
#include <cstddef>
#include <thread>

#include "io/clock.h"
#include "runtime/collective_state.h"

namespace nexar::runtime {
namespace {

using collective::DirectGroup;
using enum OperationId;

// More elements are left to where sizes are checked with care.
constexpr std::uint64_t kCountMax = std::uint64_t{1} << 40;

// As long as close() waits for the others.
constexpr std::chrono::seconds kReadersLimit(5);

void describe(CollectiveState& state, const PlainCall& call) {
  if (call.type) state.elements(call.count, *call.type);
  if (call.op != nullptr) state.reduction(*call.op);
  if (call.root) state.root(*call.root);
  if (call.pieces.empty())
    state.buffers(call.send, call.recv);
  else
    state.pieces(call.pieces);
  state.call().descriptor.operation = call.operation;
  state.call().descriptor.digest ^= call.digest;
}

struct Sizes {
  std::uint64_t send = 0;
  std::uint64_t recv = 0;
};

// Bytes of this rank's buffers, when each rank's part has `bytes`.
Sizes sizes_of(const PlainCall& call, std::uint64_t bytes, std::uint64_t ranks, bool at_root) {
  switch (call.operation) {
    case kReduceScatter: return {bytes * ranks, bytes};
    case kAllGather: return {bytes, bytes * ranks};
    case kAllToAll: return {bytes * ranks, bytes * ranks};
    case kBroadcast: return {0, bytes};
    case kReduce: return {bytes, at_root ? bytes : 0};
    case kGather: return {bytes, at_root ? bytes * ranks : 0};
    case kScatter: return {at_root ? bytes * ranks : 0, bytes};
    case kBarrier: return {};
    default: return {bytes, bytes};
  }
}

// Whether the buffers are there and lie apart, or in place in the most common ways. Others are looked at by those who can say what is
// wrong.
bool lie_well(const PlainCall& call, std::uint64_t bytes, const GroupRecord& group) {
  if (!call.pieces.empty()) return true;
  const Sizes sizes = sizes_of(call, bytes, static_cast<std::uint64_t>(group.size()), call.root == group.rank);
  if ((sizes.send > 0 && call.send == nullptr) || (sizes.recv > 0 && call.recv == nullptr)) return false;
  if (sizes.send == 0 || sizes.recv == 0) return true;
  const auto send = reinterpret_cast<std::uintptr_t>(call.send);
  const auto recv = reinterpret_cast<std::uintptr_t>(call.recv);
  if (send >= recv + sizes.recv || recv >= send + sizes.send) return true;
  switch (work_of(call.operation)) {
    case kAllReduce:
    case kScan:
    case kExclusiveScan:
    case kReduce: return send == recv;
    case kAllGather: return send == recv + static_cast<std::uint64_t>(group.rank) * bytes;
    default: return false;
  }
}

// What a caller's thread can run by itself: nothing that has to be refused, explained or watched by a clock, and no user op, which may not
// call nexar and is kept from it on the engine.
bool is_for_caller(const GroupRecord& group, const CallOptions& options, const PlainCall& call) {
  if (group.direct == nullptr || !group.direct->owner().is_caller()) return false;
  if (options.deadline || !options.algorithm.empty() || (call.op != nullptr && call.op->user_op() != nullptr)) return false;
  if (call.count > kCountMax || (call.root && !group.has(*call.root))) return false;
  if (call.type && static_cast<std::size_t>(*call.type) >= kDataTypes.size()) return false;
  return lie_well(call, call.type ? call.count * size_of(*call.type) : 0, group);
}

// Null when the op has no meaning on the type, or the call is too large.
const DirectGroup::Known* know(DirectGroup& direct, const PlainCall& call) {
  wire::CallDescriptor descriptor{.operation = call.operation, .count = call.count, .dtype = call.type, .digest = call.digest};
  if (call.op != nullptr) descriptor.op = call.op->op();
  if (call.root) descriptor.root = *call.root;
  DirectGroup::Known& known = direct.known();
  if (known.pattern && known.call == descriptor) return &known;
  known = {.call = descriptor,
           .there = {.operation = work_of(call.operation),
                     .fingerprint = descriptor.fingerprint(),
                     .count = call.count,
                     .type = call.type.value_or(DataType::kU8),
                     .root = call.root.value_or(0),
                     .op = descriptor.op}};
  if (call.op != nullptr) {
    Result<reduce::Reducer> made = reduce::Reducer::make(*call.type, call.op->op());
    if (!made) return nullptr;
    known.there.reducer = &known.reducer.emplace(*std::move(made));
  }
  const collective::direct::Area& area = direct.area();
  const collective::direct::Pattern pattern(known.there, area.rank(), area.layout(), area.tuning());
  if (!pattern.fits()) return nullptr;
  known.pattern = pattern;
  return &known;
}

// Until nobody reads any more what was lent, for as long as a node that closes waits for the others.
void wait_for_readers(DirectGroup& direct, Sequence sequence) {
  const base::Time deadline = io::real_clock().now() + kReadersLimit;
  for (Rank rank = 0; rank < direct.area().ranks(); ++rank)
    while (!direct.area().has_left(rank, sequence) && io::real_clock().now() < deadline)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
}

Result<void> hand_over(NodeCore& core, GroupRecord& group, const CallOptions& options, const PlainCall& call,
                       collective::direct::Operation& begun) {
  CollectiveState state(core, group, work_of(call.operation), options);
  describe(state, call);
  state.call().begun = &begun;
  Result<void> result = run_state(core, group, state);
  if (begun.is_over()) return result;
  begun.stop(collective::direct::Outcome::kCancelled);  // nobody has taken it: the node was closed meanwhile
  if (begun.has_lent()) wait_for_readers(*group.direct, begun.call().sequence);
  return result;
}

}  // namespace

Result<void> run_plain(NodeCore& core, GroupRecord& group, const CallOptions& options, const PlainCall& call) {
  if (auto checked = core.check_call(to_string(call.operation)); !checked) return checked;
  const CallTurn turn(group);
  if (!turn) return concurrent(group, to_string(call.operation));
  if (is_for_caller(group, options, call)) {
    DirectGroup& direct = *group.direct;
    if (const DirectGroup::Known* known = know(direct, call); known != nullptr) {
      collective::direct::Call there = known->there;
      there.send = call.send;
      there.recv = call.recv;
      there.pieces = call.pieces;
      there.sequence = direct.take_number(known->call);
      collective::direct::Operation operation(direct.area(), there, *known->pattern);
      const auto outcome = collective::direct::run_while_moving(operation, direct.spin(), direct.offers(),
                                                                group.spins() * core.config().spin, io::real_clock());
      if (outcome != collective::direct::Outcome::kDone) return hand_over(core, group, options, call, operation);
      direct.done();
      return {};
    }
  }
  CollectiveState state(core, group, work_of(call.operation), options);
  describe(state, call);
  return run_state(core, group, state);
}

Operation start_plain(const std::shared_ptr<NodeCore>& core, GroupRecord& group, const CallOptions& options, const PlainCall& call) {
  return start_collective(core, group, work_of(call.operation), options, [&](CollectiveState& state) { describe(state, call); });
}

}  // namespace nexar::runtime
