// Collectives of elements in plain buffers: the ones that ranks of one host run through shared memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "collective/direct/call.h"
#include "nexar/group.h"
#include "nexar/operation.h"
#include "runtime/group_record.h"
#include "runtime/node_core.h"
#include "types/operation_id.h"

namespace nexar::runtime {

// What a user calls; members that the operation does not have are left out.
struct PlainCall {
  OperationId operation;
  const void* send = nullptr;
  void* recv = nullptr;
  std::uint64_t count = 0;
  std::optional<DataType> type{};
  const Reduction* op = nullptr;
  std::optional<Rank> root{};
  std::uint64_t digest = 0;  // of what else the ranks have to agree on
  // Instead of both buffers, of a bucket. The list stays until the end.
  std::span<const collective::Piece> pieces{};
};

// Runs it and waits for it. In a group that shares memory and has nothing else to do it runs on this thread, without a queue, a lock or an
// allocation; only when nothing has happened for a while the engine is asked to go on with it.
Result<void> run_plain(NodeCore& core, GroupRecord& group, const CallOptions& options, const PlainCall& call);

// The same without waiting; the engine runs it.
Operation start_plain(const std::shared_ptr<NodeCore>& core, GroupRecord& group, const CallOptions& options, const PlainCall& call);

}  // namespace nexar::runtime
