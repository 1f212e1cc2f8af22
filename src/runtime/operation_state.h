// An operation, from its call until its result is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "collective/call.h"
#include "io/event_descriptor.h"
#include "mesh/message.h"
#include "nexar/message.h"
#include "nexar/result.h"
#include "rpc/call_table.h"
#include "runtime/completion.h"

namespace nexar::runtime {

class NodeCore;
class Program;
struct GroupRecord;

// Owned by the caller's Operation, or by a blocking call's stack. The engine holds a pointer between start and completion.
struct OperationState {
  enum class Kind : std::uint8_t { kNone, kSend, kReceive, kCollective, kCompound, kProgram, kCall };

  Kind kind = Kind::kNone;
  std::shared_ptr<NodeCore> core;  // of an Operation; a blocking call needs none
  mesh::Send send;
  mesh::Receive receive;
  collective::Call* collective = nullptr;  // lies beside this (collective_state.h)
  const GroupRecord* group = nullptr;      // whose ranks the caller speaks of
  rpc::Call call;
  std::vector<std::byte> owned;  // what an owned receive got, or a call

  // Of a compound: what it waits for, and what is done with their results before it ends, on the engine.
  std::vector<std::shared_ptr<OperationState>> parts;
  std::function<Result<void>()> conclude;
  std::shared_ptr<OperationState*> running;  // itself until it ends, for what is posted about it

  std::shared_ptr<Program> program;  // of what goes on step by step (program.h)

  // Written on the engine before the completion is done, read after it.
  std::optional<Result<Status>> result;
  Completion completion;

  bool unattended = false;  // the engine is kept running for it; written before it is posted

  // Touched on the engine only.
  bool active = false;
  bool lined = false;               // a collective that waits for its turn (node_programs.cc)
  OperationState* whole = nullptr;  // the compound that waits for it
  std::size_t parts_left = 0;
  std::size_t active_at = 0;     // its place among the node's active operations
  std::optional<Error> verdict;  // replaces the error of a cancellation
  std::function<void(const Result<Status>&)> callback;
  std::optional<io::EventDescriptor> event;
};

}  // namespace nexar::runtime
