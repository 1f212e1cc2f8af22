// The collectives by number: what a descriptor carries between ranks and what a plan is made for.
#pragma once

#include <cstdint>
#include <string_view>

namespace nexar {

// The numbers travel and never change; new operations follow at the end.
enum class OperationId : std::uint8_t {
  kAllReduce = 1,
  kAllReduceBucketed = 2,
  kAllReduceCompressed = 3,
  kReduceScatter = 4,
  kAllGather = 5,
  kBroadcast = 6,
  kReduce = 7,
  kGather = 8,
  kScatter = 9,
  kAllToAll = 10,
  kAllGatherV = 11,
  kReduceScatterV = 12,
  kAllToAllV = 13,
  kGatherV = 14,
  kScatterV = 15,
  kScan = 16,
  kExclusiveScan = 17,
  kBarrier = 18,
  kAllReduceRsAg = 19,
  kBroadcastBytes = 20,
  kAllGatherBytes = 21,
  kGatherBytes = 22,
};

inline constexpr std::uint8_t kOperationIdMax = 22;

// The name as it is written everywhere: "all_reduce"; "unknown" for a number that is none.
std::string_view to_string(OperationId operation);

// Whose work an operation does, once it is known who takes part with what: of tensors in one piece a bucket is an all_reduce.
constexpr OperationId work_of(OperationId operation) {
  return operation == OperationId::kAllReduceBucketed ? OperationId::kAllReduce : operation;
}

}  // namespace nexar
