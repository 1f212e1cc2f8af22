// One collective call as a direct kernel sees it, and how such a call ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "collective/pieces.h"
#include "nexar/data_type.h"
#include "nexar/ids.h"
#include "nexar/reduce_op.h"
#include "reduce/reducer.h"
#include "types/operation_id.h"

namespace nexar::collective::direct {

// Arguments are checked by the caller. Buffers may overlap as group.h says; broadcast has one buffer, given as both.
struct Call {
  OperationId operation = OperationId::kBarrier;
  Sequence sequence = 0;          // of the group; rises from call to call, and may leave out numbers that ran otherwise
  std::uint64_t fingerprint = 0;  // of the descriptor that all ranks must agree on
  const void* send = nullptr;
  void* recv = nullptr;
  std::span<const Piece> pieces{};  // of an all_reduce in place, instead of both buffers
  std::uint64_t count = 0;          // elements as in the call: of the buffer, or of one rank's slot
  DataType type = DataType::kU8;
  Rank root = 0;
  const reduce::Reducer* reducer = nullptr;  // of calls that reduce
  std::optional<ReduceOp> op{};              // the built-in op; nothing for a user op
};

enum class Outcome : std::uint8_t {
  kWaiting,   // for what a peer has not done yet; blocked_on() names one
  kDone,      //
  kMismatch,  // a peer called something else: mismatch() says who and what
  kEnded,     // a peer has ended this call without success: blocked_on()
  kNonsense,  // a peer's words make no sense: blocked_on() must be expelled
  kOpFailed,  // the user op threw: error()
  kRevoked,   // stopped from outside, by the reason that the caller gave: the epoch is over,
  kDeadline,  // the time is up,
  kCancelled  // or nobody wants the result
};

}  // namespace nexar::collective::direct
