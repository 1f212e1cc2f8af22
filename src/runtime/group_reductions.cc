// Collectives of a group that reduce.
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

// The shape takes its elements from the counts; the others are told this rank's own.
void describe_reduce_scatter_v(CollectiveState& state, std::span<const std::uint64_t> counts, DataType type, const Reduction& op,
                               const void* send, void* recv) {
  const auto rank = static_cast<std::size_t>(state.call().shape.rank);
  state.elements(rank < counts.size() ? counts[rank] : 0, type).reduction(op).send_counts(counts);
  state.call().shape.count = 0;
  state.buffers(send, recv);
}

}  // namespace

Result<void> Group::all_reduce(const void* send, void* recv, std::uint64_t count, DataType type, const Reduction& op,
                               const CallOptions& options) const {
  return run_plain(*core_, *record_, options, {kAllReduce, send, recv, count, type, &op});
}

Operation Group::start_all_reduce(const void* send, void* recv, std::uint64_t count, DataType type, const Reduction& op,
                                  const CallOptions& options) const {
  return start_plain(core_, *record_, options, {kAllReduce, send, recv, count, type, &op});
}

Result<void> Group::all_reduce_rs_ag(void* buffer, std::uint64_t count, DataType type, const Reduction& op, MiddleFunction middle,
                                     const CallOptions& options) const {
  const auto describe = [&](CollectiveState& state) { state.elements(count, type).reduction(op).halves(buffer, middle); };
  return run_collective(*core_, *record_, kAllReduceRsAg, options, describe);
}

Operation Group::start_all_reduce_rs_ag(void* buffer, std::uint64_t count, DataType type, const Reduction& op, MiddleFunction middle,
                                        const CallOptions& options) const {
  const auto describe = [&](CollectiveState& state) { state.elements(count, type).reduction(op).halves(buffer, middle); };
  return start_collective(core_, *record_, kAllReduceRsAg, options, describe);
}

Result<void> Group::reduce_scatter(const void* send, void* recv, std::uint64_t count, DataType type, const Reduction& op,
                                   const CallOptions& options) const {
  return run_plain(*core_, *record_, options, {kReduceScatter, send, recv, count, type, &op});
}

Operation Group::start_reduce_scatter(const void* send, void* recv, std::uint64_t count, DataType type, const Reduction& op,
                                      const CallOptions& options) const {
  return start_plain(core_, *record_, options, {kReduceScatter, send, recv, count, type, &op});
}

Result<void> Group::reduce_scatter_v(const void* send, void* recv, std::span<const std::uint64_t> counts, DataType type,
                                     const Reduction& op, const CallOptions& options) const {
  const auto describe = [&](CollectiveState& state) { describe_reduce_scatter_v(state, counts, type, op, send, recv); };
  return run_collective(*core_, *record_, kReduceScatterV, options, describe);
}

Operation Group::start_reduce_scatter_v(const void* send, void* recv, std::span<const std::uint64_t> counts, DataType type,
                                        const Reduction& op, const CallOptions& options) const {
  const auto describe = [&](CollectiveState& state) { describe_reduce_scatter_v(state, counts, type, op, send, recv); };
  return start_collective(core_, *record_, kReduceScatterV, options, describe);
}

Result<void> Group::reduce(const void* send, void* recv, std::uint64_t count, DataType type, const Reduction& op, Rank root,
                           const CallOptions& options) const {
  return run_plain(*core_, *record_, options, {kReduce, send, recv, count, type, &op, root});
}

Operation Group::start_reduce(const void* send, void* recv, std::uint64_t count, DataType type, const Reduction& op, Rank root,
                              const CallOptions& options) const {
  return start_plain(core_, *record_, options, {kReduce, send, recv, count, type, &op, root});
}

Result<void> Group::scan(const void* send, void* recv, std::uint64_t count, DataType type, const Reduction& op,
                         const CallOptions& options) const {
  return run_plain(*core_, *record_, options, {kScan, send, recv, count, type, &op});
}

Operation Group::start_scan(const void* send, void* recv, std::uint64_t count, DataType type, const Reduction& op,
                            const CallOptions& options) const {
  return start_plain(core_, *record_, options, {kScan, send, recv, count, type, &op});
}

Result<void> Group::exclusive_scan(const void* send, void* recv, std::uint64_t count, DataType type, const Reduction& op,
                                   const CallOptions& options) const {
  return run_plain(*core_, *record_, options, {kExclusiveScan, send, recv, count, type, &op});
}

Operation Group::start_exclusive_scan(const void* send, void* recv, std::uint64_t count, DataType type, const Reduction& op,
                                      const CallOptions& options) const {
  return start_plain(core_, *record_, options, {kExclusiveScan, send, recv, count, type, &op});
}

}  // namespace nexar
