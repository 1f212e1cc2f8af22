// Plans on real values, in random orders, against what a serial program computes.
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "plan/cases.h"
#include "plan/executor.h"

namespace nexar::plan {
namespace {

using enum OperationId;

// Distinct for every rank and element.
Word value(Rank rank, std::uint64_t element) {
  Word word = (static_cast<Word>(rank) + 1) * 0x9e3779b97f4a7c15u + element * 0xbf58476d1ce4e5b9u;
  return word ^ word >> 31;
}

// Commutes and is exact: what is added twice or left out shows.
const Arithmetic kSum{[](Word a, Word b) { return a + b; }, [](Word sum, std::uint64_t n) { return sum * 0x10001 + n; }, 0};

// x -> a x + b, composed: associative, but does not commute.
const Arithmetic kCompose{[](Word f, Word g) {
                            const Word a = (f >> 32 | 1) * (g >> 32 | 1) & 0xffffffff;
                            const Word b = ((f & 0xffffffff) * (g >> 32 | 1) + (g & 0xffffffff)) & 0xffffffff;
                            return a << 32 | b;
                          },
                          [](Word sum, std::uint64_t n) { return sum * 0x10001 + n; }, Word{1} << 32};

// Doubles: neither associative nor exact, so that only the same expression gives the same bits.
const Arithmetic kDoubles{
    [](Word a, Word b) { return std::bit_cast<Word>(std::bit_cast<double>(a) + std::bit_cast<double>(b)); },
    [](Word sum, std::uint64_t n) { return std::bit_cast<Word>(std::bit_cast<double>(sum) / static_cast<double>(n)); },
    std::bit_cast<Word>(0.0)};
Word double_value(Rank rank, std::uint64_t element) {
  return std::bit_cast<Word>(static_cast<double>(value(rank, element) >> 11) * (element % 3 == 0 ? 1e-9 : 1e3));
}

Word normal(const Arithmetic& arithmetic, Word word) { return &arithmetic == &kCompose ? word | Word{1} << 32 : word; }

// op over ranks [0, ranks) of element `element`.
Word reduced(const Arithmetic& arithmetic, const Shape& shape, Rank ranks, std::uint64_t element) {
  if (ranks == 0) return arithmetic.identity;
  Word sum = normal(arithmetic, value(0, element));
  for (Rank rank = 1; rank < ranks; ++rank) sum = arithmetic.combine(sum, normal(arithmetic, value(rank, element)));
  return shape.average && ranks > 1 ? arithmetic.divide(sum, static_cast<std::uint64_t>(ranks)) : sum;
}

// Element i of what `shape` must end with, computed by the table of collectives and nothing else.
Word oracle(const Arithmetic& arithmetic, const std::vector<Shape>& shapes, const Shape& shape, std::uint64_t i) {
  const auto holder = [&](const Cut& slots) {
    Rank from = 0;
    while (i >= slots.piece(from).end()) ++from;
    return from;
  };
  switch (shape.operation) {
    case kAllReduce:
    case kReduce: return reduced(arithmetic, shape, shape.size, i);
    case kScan: return reduced(arithmetic, shape, shape.rank + 1, i);
    case kExclusiveScan: return reduced(arithmetic, shape, shape.rank, i);
    case kReduceScatter:
    case kReduceScatterV: return reduced(arithmetic, shape, shape.size, shape.input_slots().piece(shape.rank).first + i);
    case kBroadcast: return normal(arithmetic, value(shape.root, i));
    case kScatter:
    case kScatterV: {
      const Shape& root = shapes[static_cast<std::size_t>(shape.root)];
      return normal(arithmetic, value(shape.root, root.input_slots().piece(shape.rank).first + i));
    }
    case kAllToAll:
    case kAllToAllV: {
      const Rank from = holder(shape.output_slots());
      const std::uint64_t offset = i - shape.output_slots().piece(from).first;
      return normal(arithmetic, value(from, shapes[static_cast<std::size_t>(from)].input_slots().piece(shape.rank).first + offset));
    }
    default: {
      const Rank from = holder(shape.output_slots());
      return normal(arithmetic, value(from, i - shape.output_slots().piece(from).first));
    }
  }
}

void expect_results(const Call& call, const std::vector<Plan>& plans, const Arithmetic& arithmetic, const std::vector<UserBuffers>& buffers,
                    const std::vector<UserBuffers>& before) {
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    const auto result = result_of(plans[rank], buffers[rank]);
    for (std::uint64_t i = 0; i < result.size(); ++i)
      ASSERT_EQ(result[i], oracle(arithmetic, call.shapes, call.shapes[rank], i))
          << call.to_text() << ", rank " << rank << ", element " << i;
    if (call.shapes[rank].alias() != Alias::kOutputInInput) {
      ASSERT_EQ(buffers[rank].input, before[rank].input) << call.to_text() << ": rank " << rank << "'s input is kept";
    }
  }
}

void run_and_compare(const Call& call, std::uint64_t seed) {
  const std::vector<Plan> plans = call.plans();
  const Arithmetic& arithmetic = call.shapes[0].ordered ? kCompose : kSum;
  const auto before = buffers_for(plans, [&](Rank rank, std::uint64_t i) { return normal(arithmetic, value(rank, i)); });
  auto buffers = before;
  ASSERT_TRUE(execute({{plans, &arithmetic, &buffers}}, seed)) << call.to_text() << ": stuck with seed " << seed;
  ASSERT_NO_FATAL_FAILURE(expect_results(call, plans, arithmetic, buffers, before)) << "seed " << seed;
}

TEST(Execute, GivesWhatASerialProgramDoesForEveryAlgorithm) {
  std::uint64_t seed = 1;
  std::uint64_t turn = 0;
  for (const Algorithm* algorithm : every_algorithm())
    for (Rank size = 1; size <= 9; ++size)
      for (const std::uint64_t count : {0, 1, size - 1, size, size + 1, 41})
        for (const int segments : {1, 3})
          for (const Call& call : calls_in_turn(*algorithm, size, count, segments, turn++))
            ASSERT_NO_FATAL_FAILURE(run_and_compare(call, seed++));
}

TEST(Execute, GivesTheSameBitsOnEveryRankWhateverTheOrder) {
  for (const Algorithm& algorithm : algorithms_of(kAllReduce)) {
    for (const Rank size : {2, 3, 5, 8}) {
      for (const Call& call : calls_of(algorithm, size, 57, 2)) {
        const std::vector<Plan> plans = call.plans();
        std::vector<Word> first;
        for (std::uint64_t seed = 1; seed <= 4; ++seed) {
          auto buffers = buffers_for(plans, double_value);
          ASSERT_TRUE(execute({{plans, &kDoubles, &buffers}}, seed));
          for (std::size_t rank = 0; rank < plans.size(); ++rank) {
            const auto result = result_of(plans[rank], buffers[rank]);
            if (first.empty()) first.assign(result.begin(), result.end());
            ASSERT_TRUE(std::equal(result.begin(), result.end(), first.begin(), first.end())) << call.to_text() << ", seed " << seed;
          }
        }
      }
    }
  }
}

TEST(Execute, GivesTheSameBitsForEveryReproducibleAlgorithm) {
  for (const Rank size : {2, 3, 6}) {
    std::vector<Word> first;
    for (const Algorithm& algorithm : algorithms_of(kAllReduce)) {
      for (const int segments : {1, 3}) {
        Shape variant;
        variant.reproducible = true;
        const Call call = make_call(algorithm, size, 57, segments, variant);
        if (!algorithm.legal(call.shapes[0])) continue;
        const std::vector<Plan> plans = call.plans();
        auto buffers = buffers_for(plans, double_value);
        ASSERT_TRUE(execute({{plans, &kDoubles, &buffers}}, 5));
        if (first.empty()) first = buffers[0].output;
        EXPECT_EQ(buffers[0].output, first) << call.to_text();
      }
    }
  }
}

// Operations in flight share the lane between two ranks, and a lane moves one message at a time.
TEST(Execute, RunsManyCallsOverOneLaneWithoutADeadlock) {
  constexpr Rank kSize = 5;
  std::vector<Call> calls;
  for (const Algorithm* algorithm : every_algorithm())
    if (algorithm->legal(make_call(*algorithm, kSize, 19, 2).shapes[0])) calls.push_back(calls_of(*algorithm, kSize, 19, 2).back());
  ASSERT_GT(calls.size(), 20u);
  std::vector<std::vector<Plan>> plans;
  for (const Call& call : calls) plans.push_back(call.plans());
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<std::vector<UserBuffers>> before;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const Arithmetic& arithmetic = calls[i].shapes[0].ordered ? kCompose : kSum;
      before.push_back(buffers_for(plans[i], [&](Rank rank, std::uint64_t element) { return normal(arithmetic, value(rank, element)); }));
    }
    auto buffers = before;
    std::vector<RunningCall> running;
    for (std::size_t i = 0; i < calls.size(); ++i)
      running.push_back({plans[i], calls[i].shapes[0].ordered ? &kCompose : &kSum, &buffers[i]});
    ASSERT_TRUE(execute(std::move(running), seed)) << "stuck with seed " << seed;
    for (std::size_t i = 0; i < calls.size(); ++i)
      ASSERT_NO_FATAL_FAILURE(expect_results(calls[i], plans[i], calls[i].shapes[0].ordered ? kCompose : kSum, buffers[i], before[i]));
  }
}

}  // namespace
}  // namespace nexar::plan
