// What one rank calls: everything about a collective that its caller knows.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "collective/direct/call.h"
#include "collective/pieces.h"
#include "mesh/message.h"
#include "nexar/reduce_op.h"
#include "nexar/result.h"
#include "plan/shape.h"
#include "reduce/reducer.h"
#include "wire/call.h"

namespace nexar::collective {

// What a call in the group's shared memory is said to have run by; no plan has this name.
inline constexpr std::string_view kInMemory = "shared_memory";

class DirectGroup;
class Operation;
namespace direct {
class Operation;
}

// Filled in by the caller and kept by it until `done` has been called. The user's memory is touched only in between.
struct Call {
  mesh::GroupId group = 0;
  wire::CallDescriptor descriptor{};  // as the others are told
  plan::Shape shape{};                // rank and size are the group's; its hosts are added when it runs
  std::string_view algorithm{};       // empty: the planner's choice

  const void* input = nullptr;
  void* output = nullptr;
  std::span<const Piece> pieces{};  // instead of both, of an all_reduce in place
  std::optional<reduce::Reducer> reducer{};
  std::optional<ReduceOp> op{};  // of ours; nothing with a user op

  // all_reduce_rs_ag: what happens between its halves; may be empty.
  const std::function<void(void*, std::uint64_t, std::uint64_t)>* middle = nullptr;

  // Byte strings: what this rank gives, how many bytes it may get, and what it gets.
  std::span<const std::byte> bytes{};
  std::uint64_t bytes_max = 0;
  std::vector<std::byte> string{};
  std::vector<std::vector<std::byte>> strings{};

  std::optional<base::Duration> deadline{};

  // By what it has run, from when it has begun: the algorithms of its plans, one or two, or kInMemory.
  std::array<std::string_view, 2> ran{};

  // An error in the arguments: nothing is sent, but the sequence number is used and the others are told.
  std::optional<Error> refusal{};

  // Called once, perhaps before the call that begins it returns.
  std::function<void(Result<void>)> done{};

  // Of a group that shares memory: whose owner counts this call, and what the caller's thread has begun of it, under a number that it has
  // taken.
  DirectGroup* shared = nullptr;
  direct::Operation* begun = nullptr;

  Operation* running = nullptr;  // kept by Collectives
};

}  // namespace nexar::collective
