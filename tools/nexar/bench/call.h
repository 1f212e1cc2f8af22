// A collective as all its ranks call it, without memory: what each gives, and what each must have afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "nexar/data_type.h"
#include "nexar/ids.h"
#include "nexar/reduce_op.h"
#include "types/operation_id.h"

namespace nexar::bench {

// How the memory of a call lies at one rank.
enum class Place : std::uint8_t {
  kApart,       // what is given and what comes do not overlap
  kSame,        // one buffer for both
  kInputSlot,   // what is given lies in this rank's slot of what comes
  kOutputSlot,  // what comes lies in this rank's slot of what is given
};

// Elements of a result: those of one rank's input, or of the inputs of ranks 0 to `ranks` - 1 reduced.
struct Piece {
  bool reduced = false;
  int ranks = 0;  // when reduced
  Rank from = 0;  // otherwise
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

struct Call {
  OperationId operation = OperationId::kBarrier;
  DataType type = DataType::kF32;
  ReduceOp op = ReduceOp::kSum;
  Rank root = 0;
  bool in_place = true;  // where the operation can be
  // Elements of each rank's part: all the same except in the v- and bytes-forms. In all_to_all_v rank i gives rank j those of number
  // i + 2j, so that what goes one way is not what comes the other.
  std::vector<std::uint64_t> counts{};

  int ranks() const { return static_cast<int>(counts.size()); }
  std::uint64_t count() const { return counts[0]; }
  std::uint64_t bytes() const;  // of the whole, as nccl-tests count it: of the largest buffer of a rank

  Place place(Rank rank) const;
  std::uint64_t slot(Rank rank) const;  // where the rank's slot begins, in elements
  std::uint64_t input_count(Rank rank) const;
  std::vector<Piece> output(Rank rank) const;               // in the order in which they lie; empty where nothing comes
  std::vector<std::uint64_t> send_counts(Rank rank) const;  // of all_to_all_v
  std::vector<std::uint64_t> recv_counts(Rank rank) const;
};

// What a benchmark knows of an operation.
struct Collective {
  OperationId operation;
  bool reduces;
  bool has_parts;               // a buffer has one for each rank, so a size is that of all together
  bool is_uneven;               // parts may differ
  bool is_apart;                // ranks do not all wait for each other, so iterations are kept apart by barriers
  double (*factor)(int ranks);  // busbw / algbw
};

// Every operation that can be measured, in the order of `bench all`.
std::span<const Collective> collectives();
const Collective* find_collective(std::string_view name);
const Collective& collective_of(OperationId operation);

// The call of that many bytes, or the nearest with an element for each part; uneven where the operation can be.
Call call_of_bytes(const Collective& collective, std::uint64_t bytes, int ranks, DataType type, ReduceOp op);

}  // namespace nexar::bench
