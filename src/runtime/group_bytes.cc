// Collectives of a group on byte strings.
#include "runtime/collective_state.h"

namespace nexar {

using runtime::CollectiveState;
using runtime::run_collective;
using runtime::start_collective;
using enum OperationId;

Result<std::vector<std::byte>> Group::broadcast_bytes(std::span<const std::byte> bytes, Rank root, const CallOptions& options) const {
  std::vector<std::byte> result;
  auto done = run_collective(
      *core_, *record_, kBroadcastBytes, options, [&](CollectiveState& state) { state.root(root).strings(bytes); },
      [&](collective::Call& call) { result = std::move(call.string); });
  if (!done) return std::move(done).error();
  return result;
}

Operation Group::start_broadcast_bytes(std::span<const std::byte> bytes, Rank root, const CallOptions& options) const {
  return start_collective(core_, *record_, kBroadcastBytes, options, [&](CollectiveState& state) { state.root(root).strings(bytes); });
}

Result<std::vector<std::vector<std::byte>>> Group::all_gather_bytes(std::span<const std::byte> bytes, const CallOptions& options) const {
  std::vector<std::vector<std::byte>> result;
  auto done = run_collective(
      *core_, *record_, kAllGatherBytes, options, [&](CollectiveState& state) { state.strings(bytes); },
      [&](collective::Call& call) { result = std::move(call.strings); });
  if (!done) return std::move(done).error();
  return result;
}

Operation Group::start_all_gather_bytes(std::span<const std::byte> bytes, const CallOptions& options) const {
  return start_collective(core_, *record_, kAllGatherBytes, options, [&](CollectiveState& state) { state.strings(bytes); });
}

Result<std::vector<std::vector<std::byte>>> Group::gather_bytes(std::span<const std::byte> bytes, Rank root,
                                                                const CallOptions& options) const {
  std::vector<std::vector<std::byte>> result;
  auto done = run_collective(
      *core_, *record_, kGatherBytes, options, [&](CollectiveState& state) { state.root(root).strings(bytes); },
      [&](collective::Call& call) { result = std::move(call.strings); });
  if (!done) return std::move(done).error();
  return result;
}

Operation Group::start_gather_bytes(std::span<const std::byte> bytes, Rank root, const CallOptions& options) const {
  return start_collective(core_, *record_, kGatherBytes, options, [&](CollectiveState& state) { state.root(root).strings(bytes); });
}

}  // namespace nexar
