#include "plan/phases.h"

#include <vector>

#include <gtest/gtest.h>

#include "plan/chooser.h"
#include "plan/executor.h"
#include "plan/verify.h"

namespace nexar::plan {
namespace {

using enum OperationId;

std::vector<Plan> plans_of(const std::vector<Shape>& shapes) {
  std::vector<Plan> plans;
  for (const Shape& shape : shapes) {
    const Choice choice = Chooser().choose(shape).value();
    plans.push_back(make_plan(choice.shape, *choice.algorithm).value());
  }
  EXPECT_TRUE(verify(plans));
  return plans;
}

const Arithmetic kSum{[](Word a, Word b) { return a + b; }, [](Word sum, std::uint64_t) { return sum; }, 0};
Word value(Rank rank, std::uint64_t i) { return (static_cast<Word>(rank) + 1) * 1000 + i; }

TEST(Phases, GiveAccessToTheScatteredMiddle) {
  for (const Rank size : {1, 2, 3, 7}) {
    for (const std::uint64_t count : {0, 1, 6, 50}) {
      std::vector<Shape> scatters;
      std::vector<Shape> gathers;
      std::vector<Extent> own;
      for (Rank rank = 0; rank < size; ++rank) {
        const auto phases = scatter_and_gather({.operation = kAllReduceRsAg, .rank = rank, .size = size, .count = count}).value();
        scatters.push_back(phases.scatter);
        gathers.push_back(phases.gather);
        own.push_back(phases.own);
      }
      const auto scatter = plans_of(scatters);
      auto buffers = buffers_for(scatter, value);
      ASSERT_TRUE(execute({{scatter, &kSum, &buffers}}, 7));

      // Between the phases the application negates its chunk; the gather runs on the same memory, which it calls output.
      const auto gather = plans_of(gathers);
      for (std::size_t rank = 0; rank < buffers.size(); ++rank) {
        for (std::uint64_t i = own[rank].first; i < own[rank].end(); ++i) buffers[rank].input[i] = 0 - buffers[rank].input[i];
        std::swap(buffers[rank].input, buffers[rank].output);
      }
      ASSERT_TRUE(execute({{gather, &kSum, &buffers}}, 8));
      for (const UserBuffers& user : buffers) {
        ASSERT_EQ(user.output.size(), count);
        for (std::uint64_t i = 0; i < count; ++i) {
          Word sum = 0;
          for (Rank rank = 0; rank < size; ++rank) sum += value(rank, i);
          EXPECT_EQ(user.output[i], 0 - sum);
        }
      }
    }
  }
}

TEST(Phases, MoveStringsWhoseLengthsNobodyKnew) {
  constexpr Rank kSize = 5;
  const auto length = [](Rank rank, std::uint64_t) { return rank == 2 ? Word{0} : static_cast<Word>(rank) * 3 + 1; };
  for (const OperationId operation : {kBroadcastBytes, kAllGatherBytes, kGatherBytes}) {
    const Rank root = operation == kAllGatherBytes ? 0 : 3;
    std::vector<Shape> first;
    for (Rank rank = 0; rank < kSize; ++rank)
      first.push_back(lengths_phase({.operation = operation, .rank = rank, .size = kSize, .root = root}).value());
    const auto lengths = plans_of(first);
    auto known = buffers_for(lengths, length);
    ASSERT_TRUE(execute({{lengths, &kSum, &known}}, 1));

    std::vector<Shape> second;
    for (Rank rank = 0; rank < kSize; ++rank) {
      std::vector<std::uint64_t> given = known[static_cast<std::size_t>(rank)].output;
      if (operation == kGatherBytes && rank != root) given = {length(rank, 0)};
      second.push_back(payload_phase({.operation = operation, .rank = rank, .size = kSize, .root = root}, given).value());
    }
    const auto payload = plans_of(second);
    auto strings = buffers_for(payload, value);
    ASSERT_TRUE(execute({{payload, &kSum, &strings}}, 2));
    const std::vector<Word>& result = strings[static_cast<std::size_t>(root)].output;
    std::vector<Word> expected;
    for (Rank rank = 0; rank < kSize; ++rank)
      for (std::uint64_t i = 0; i < length(rank, 0) && (operation != kBroadcastBytes || rank == root); ++i)
        expected.push_back(value(rank, i));
    EXPECT_EQ(result, expected) << to_string(operation);
  }
}

TEST(Phases, BelongToTheirOperations) {
  EXPECT_FALSE(scatter_and_gather({.operation = kAllReduce, .count = 1}));
  EXPECT_FALSE(lengths_phase({.operation = kBroadcast}));
  const std::uint64_t lengths[] = {1, 2};
  EXPECT_FALSE(payload_phase({.operation = kAllGather, .size = 2}, lengths));
  EXPECT_FALSE(payload_phase({.operation = kAllGatherBytes, .size = 3}, lengths));
  const std::uint64_t huge[] = {~std::uint64_t{0}, ~std::uint64_t{0}};
  EXPECT_FALSE(payload_phase({.operation = kAllGatherBytes, .size = 2}, huge));
}

TEST(Phases, NumberTheirMessagesApart) {
  const auto phases = scatter_and_gather({.operation = kAllReduceRsAg, .size = 2, .count = 8}).value();
  EXPECT_EQ(phases.scatter.phase, 0);
  EXPECT_EQ(phases.gather.phase, 1);
}

}  // namespace
}  // namespace nexar::plan
