// A collective on values, and what it must give, computed one element at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collective/direct/call.h"
#include "reduce/reducer.h"

namespace nexar::test {

struct Case {
  OperationId operation = OperationId::kBarrier;
  DataType type = DataType::kF32;
  ReduceOp op = ReduceOp::kSum;
  std::uint64_t count = 0;
  Rank ranks = 1;
  Rank root = 0;
  bool in_place = false;

  std::string to_text() const;
};

inline constexpr OperationId kDirectOperations[] = {OperationId::kAllReduce,     OperationId::kReduceScatter, OperationId::kAllGather,
                                                    OperationId::kBroadcast,     OperationId::kReduce,        OperationId::kGather,
                                                    OperationId::kScatter,       OperationId::kAllToAll,      OperationId::kScan,
                                                    OperationId::kExclusiveScan, OperationId::kBarrier};

bool reduces(OperationId operation);
bool has_root(OperationId operation);

// The memory of all ranks: inputs of random elements, and what is around the buffers, which nobody may touch.
class CaseMemory {
 public:
  CaseMemory(const Case& what, std::uint64_t seed);

  // The same call with what differs from rank to rank. It points into this object.
  collective::direct::Call call(Rank rank, Sequence sequence) const;

  // Empty, or what is wrong with the buffers of a rank after the call.
  std::string wrong_at(Rank rank) const;

  // Puts the buffers of a rank somewhere else before the call, such as memory that processes share; `at` holds bytes_of_rank().
  std::uint64_t bytes_of_rank() const { return 2 * (buffer_bytes() + 2 * kGuard); }
  void place(Rank rank, std::uint8_t* at);

 private:
  static constexpr std::uint64_t kGuard = 64;
  struct Buffers {
    std::uint8_t* input = nullptr;
    std::uint8_t* output = nullptr;
    std::vector<std::uint8_t> memory{};
  };

  std::uint64_t input_count(Rank rank) const;
  std::uint64_t output_count(Rank rank) const;
  std::uint64_t buffer_bytes() const;
  std::uint64_t expected(Rank rank, std::uint64_t index) const;
  std::uint64_t given(Rank rank, std::uint64_t index) const;

  Case case_;
  std::optional<reduce::Reducer> reducer_;
  std::vector<std::vector<std::uint8_t>> given_;  // a copy of all inputs
  std::vector<Buffers> buffers_;
};

}  // namespace nexar::test
