// Collectives of a group that move elements, and the barrier.
#include <fmt/format.h>

#include "runtime/collective_state.h"
#include "runtime/plain_call.h"

namespace nexar {

using runtime::CollectiveState;
using runtime::run_collective;
using runtime::run_plain;
using runtime::start_collective;
using runtime::start_plain;
using enum OperationId;

namespace {

// Shapes of v-forms take their elements from the counts; the others are told this rank's own.
void describe_all_gather_v(CollectiveState& state, std::span<const std::uint64_t> counts, DataType type, const void* send, void* recv) {
  const auto rank = static_cast<std::size_t>(state.call().shape.rank);
  state.elements(rank < counts.size() ? counts[rank] : 0, type).receive_counts(counts);
  state.call().shape.count = 0;
  state.buffers(send, recv);
}

void describe_all_to_all_v(CollectiveState& state, std::span<const std::uint64_t> send_counts, std::span<const std::uint64_t> recv_counts,
                           DataType type, const void* send, void* recv) {
  std::uint64_t all = 0;
  for (const std::uint64_t count : send_counts) all += count;  // only told; the shape checks that it fits
  state.elements(all, type).send_counts(send_counts).receive_counts(recv_counts);
  state.call().shape.count = 0;
  state.buffers(send, recv);
}

// Only the root has counts, and its own is among them.
CollectiveState& describe_rooted_v(CollectiveState& state, std::uint64_t count, std::span<const std::uint64_t> counts,
                                   CollectiveState& (CollectiveState::*set_counts)(std::span<const std::uint64_t>)) {
  const plan::Shape& shape = state.call().shape;
  if (!shape.is_root()) return state;
  const auto rank = static_cast<std::size_t>(shape.rank);
  if (rank < counts.size() && counts[rank] != count)
    state.refuse(Error(ErrorCode::kInvalidArgument, fmt::format("{}: the root's own count is {}, and {} among the counts",
                                                                to_string(shape.operation), count, counts[rank])));
  return (state.*set_counts)(counts);
}

}  // namespace

Result<void> Group::all_gather(const void* send, void* recv, std::uint64_t count, DataType type, const CallOptions& options) const {
  return run_plain(*core_, *record_, options, {kAllGather, send, recv, count, type});
}

Operation Group::start_all_gather(const void* send, void* recv, std::uint64_t count, DataType type, const CallOptions& options) const {
  return start_plain(core_, *record_, options, {kAllGather, send, recv, count, type});
}

Result<void> Group::all_gather_v(const void* send, void* recv, std::span<const std::uint64_t> counts, DataType type,
                                 const CallOptions& options) const {
  const auto describe = [&](CollectiveState& state) { describe_all_gather_v(state, counts, type, send, recv); };
  return run_collective(*core_, *record_, kAllGatherV, options, describe);
}

Operation Group::start_all_gather_v(const void* send, void* recv, std::span<const std::uint64_t> counts, DataType type,
                                    const CallOptions& options) const {
  const auto describe = [&](CollectiveState& state) { describe_all_gather_v(state, counts, type, send, recv); };
  return start_collective(core_, *record_, kAllGatherV, options, describe);
}

Result<void> Group::broadcast(void* buffer, std::uint64_t count, DataType type, Rank root, const CallOptions& options) const {
  return run_plain(*core_, *record_, options, {kBroadcast, buffer, buffer, count, type, nullptr, root});
}

Operation Group::start_broadcast(void* buffer, std::uint64_t count, DataType type, Rank root, const CallOptions& options) const {
  return start_plain(core_, *record_, options, {kBroadcast, buffer, buffer, count, type, nullptr, root});
}

Result<void> Group::gather(const void* send, void* recv, std::uint64_t count, DataType type, Rank root, const CallOptions& options) const {
  return run_plain(*core_, *record_, options, {kGather, send, recv, count, type, nullptr, root});
}

Operation Group::start_gather(const void* send, void* recv, std::uint64_t count, DataType type, Rank root,
                              const CallOptions& options) const {
  return start_plain(core_, *record_, options, {kGather, send, recv, count, type, nullptr, root});
}

Result<void> Group::gather_v(const void* send, std::uint64_t count, void* recv, std::span<const std::uint64_t> counts, DataType type,
                             Rank root, const CallOptions& options) const {
  const auto describe = [&](CollectiveState& state) {
    describe_rooted_v(state.elements(count, type).root(root), count, counts, &CollectiveState::receive_counts).buffers(send, recv);
  };
  return run_collective(*core_, *record_, kGatherV, options, describe);
}

Operation Group::start_gather_v(const void* send, std::uint64_t count, void* recv, std::span<const std::uint64_t> counts, DataType type,
                                Rank root, const CallOptions& options) const {
  const auto describe = [&](CollectiveState& state) {
    describe_rooted_v(state.elements(count, type).root(root), count, counts, &CollectiveState::receive_counts).buffers(send, recv);
  };
  return start_collective(core_, *record_, kGatherV, options, describe);
}

Result<void> Group::scatter(const void* send, void* recv, std::uint64_t count, DataType type, Rank root, const CallOptions& options) const {
  return run_plain(*core_, *record_, options, {kScatter, send, recv, count, type, nullptr, root});
}

Operation Group::start_scatter(const void* send, void* recv, std::uint64_t count, DataType type, Rank root,
                               const CallOptions& options) const {
  return start_plain(core_, *record_, options, {kScatter, send, recv, count, type, nullptr, root});
}

Result<void> Group::scatter_v(const void* send, std::span<const std::uint64_t> counts, void* recv, std::uint64_t count, DataType type,
                              Rank root, const CallOptions& options) const {
  const auto describe = [&](CollectiveState& state) {
    describe_rooted_v(state.elements(count, type).root(root), count, counts, &CollectiveState::send_counts).buffers(send, recv);
  };
  return run_collective(*core_, *record_, kScatterV, options, describe);
}

Operation Group::start_scatter_v(const void* send, std::span<const std::uint64_t> counts, void* recv, std::uint64_t count, DataType type,
                                 Rank root, const CallOptions& options) const {
  const auto describe = [&](CollectiveState& state) {
    describe_rooted_v(state.elements(count, type).root(root), count, counts, &CollectiveState::send_counts).buffers(send, recv);
  };
  return start_collective(core_, *record_, kScatterV, options, describe);
}

Result<void> Group::all_to_all(const void* send, void* recv, std::uint64_t count, DataType type, const CallOptions& options) const {
  return run_plain(*core_, *record_, options, {kAllToAll, send, recv, count, type});
}

Operation Group::start_all_to_all(const void* send, void* recv, std::uint64_t count, DataType type, const CallOptions& options) const {
  return start_plain(core_, *record_, options, {kAllToAll, send, recv, count, type});
}

Result<void> Group::all_to_all_v(const void* send, std::span<const std::uint64_t> send_counts, void* recv,
                                 std::span<const std::uint64_t> recv_counts, DataType type, const CallOptions& options) const {
  const auto describe = [&](CollectiveState& state) { describe_all_to_all_v(state, send_counts, recv_counts, type, send, recv); };
  return run_collective(*core_, *record_, kAllToAllV, options, describe);
}

Operation Group::start_all_to_all_v(const void* send, std::span<const std::uint64_t> send_counts, void* recv,
                                    std::span<const std::uint64_t> recv_counts, DataType type, const CallOptions& options) const {
  const auto describe = [&](CollectiveState& state) { describe_all_to_all_v(state, send_counts, recv_counts, type, send, recv); };
  return start_collective(core_, *record_, kAllToAllV, options, describe);
}

Result<void> Group::barrier(const CallOptions& options) const { return run_plain(*core_, *record_, options, {kBarrier}); }

Operation Group::start_barrier(const CallOptions& options) const { return start_plain(core_, *record_, options, {kBarrier}); }

}  // namespace nexar
