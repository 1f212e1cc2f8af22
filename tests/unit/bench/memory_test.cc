#include "bench/memory.h"

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nexar::bench {
namespace {

constexpr std::uint64_t kSeed = 3;

Call call_of(OperationId operation, bool in_place) {
  Call call;
  call.operation = operation;
  call.type = DataType::kI32;
  call.in_place = in_place;
  call.counts = {6, 6, 6};
  return call;
}

// What the call must leave at `rank`, from inputs that are made apart.
std::vector<std::int32_t> right_result(const Call& call, Rank rank) {
  std::vector<std::int32_t> result;
  for (const Piece& piece : call.output(rank))
    for (std::uint64_t i = 0; i < piece.count; ++i) {
      std::uint32_t total = 0;
      for (Rank from = 0; from < call.ranks(); ++from) {
        if (piece.reduced ? from >= piece.ranks : from != piece.from) continue;
        Memory theirs(call, from, kSeed);
        theirs.fill();
        std::uint32_t value = 0;
        std::memcpy(&value, theirs.input() + (piece.first + i) * sizeof value, sizeof value);
        total += value;
      }
      result.push_back(static_cast<std::int32_t>(total));
    }
  return result;
}

TEST(Memory, AcceptsTheResultAndNothingElse) {
  for (const Collective& collective : collectives())
    for (const bool in_place : {false, true})
      for (Rank rank = 0; rank < 3; ++rank) {
        SCOPED_TRACE(std::string(to_string(collective.operation)) + (in_place ? " in place" : "") + " at " + std::to_string(rank));
        const Call call = call_of(collective.operation, in_place);
        Memory memory(call, rank, kSeed);
        memory.fill();
        const std::vector<std::int32_t> result = right_result(call, rank);
        ASSERT_EQ(memory.output_bytes(), result.size() * sizeof(std::int32_t));
        if (result.empty()) {
          EXPECT_EQ(memory.output(), nullptr);
          EXPECT_EQ(memory.count_wrong(), 0u);
          continue;
        }
        std::memcpy(memory.output(), result.data(), memory.output_bytes());
        EXPECT_EQ(memory.count_wrong(), 0u);
        memory.output()[0] ^= std::byte{1};
        memory.output()[memory.output_bytes() - 1] ^= std::byte{1};
        EXPECT_EQ(memory.count_wrong(), 2u);
      }
}

TEST(Memory, ThatNothingWasWrittenToIsWrong) {
  for (const Collective& collective : collectives()) {
    SCOPED_TRACE(to_string(collective.operation));
    Memory memory(call_of(collective.operation, true), 1, kSeed);
    memory.fill();
    EXPECT_EQ(memory.count_wrong() > 0, memory.output_bytes() > 0);
  }
}

TEST(Memory, NoticesChangesOfTheInputAndBehindTheBuffers) {
  const Call call = call_of(OperationId::kAllReduce, false);
  const std::vector<std::int32_t> result = right_result(call, 0);
  for (const bool input : {true, false}) {
    Memory memory(call, 0, kSeed);
    memory.fill();
    std::memcpy(memory.output(), result.data(), memory.output_bytes());
    ASSERT_EQ(memory.count_wrong(), 0u);
    auto* changed = const_cast<std::byte*>(input ? memory.input() : memory.output() + memory.output_bytes());
    *changed ^= std::byte{4};
    EXPECT_EQ(memory.count_wrong(), 1u);
  }
}

TEST(Memory, TakesResultsThatLieElsewhere) {
  const Call call = call_of(OperationId::kAllGatherBytes, false);
  Memory memory(call, 2, kSeed);
  memory.fill();
  std::vector<std::int32_t> result = right_result(call, 2);
  EXPECT_EQ(memory.count_wrong(std::as_bytes(std::span(result))), 0u);
  result[3] ^= 1;
  EXPECT_EQ(memory.count_wrong(std::as_bytes(std::span(result))), 1u);
  result.pop_back();
  EXPECT_GT(memory.count_wrong(std::as_bytes(std::span(result))), 0u);
}

}  // namespace
}  // namespace nexar::bench
