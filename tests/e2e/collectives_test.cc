// Every collective between real nodes, over real links, against a serial oracle.
#include <atomic>
#include <chrono>
#include <latch>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collective_calls.h"
#include "collectives_oracle.h"
#include "ranks.h"

namespace nexar::test {
namespace {

using namespace std::chrono_literals;

class EveryCall : public testing::TestWithParam<int> {};

TEST_P(EveryCall, GivesWhatASerialProgramGives) {
  Ranks ranks(GetParam());
  ranks.run([](const Group& world) {
    for (const std::uint64_t count : {0, 1, 3, 1000}) {
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax}) {
        reductions<float>(world, count, op);
        reductions<bf16>(world, count, op);
        reductions<std::int32_t>(world, count, op);
      }
      reductions<double>(world, count, ReduceOp::kProd);
      reductions<std::uint16_t>(world, count, ReduceOp::kXor);
      movements<std::uint8_t>(world, count);
      movements<double>(world, count);
      uneven_movements<std::int64_t>(world, count);
    }
    byte_strings(world);
  });
}

TEST_P(EveryCall, IsRightOnLargeBuffersToo) {
  Ranks ranks(GetParam());
  ranks.run([](const Group& world) {
    reductions<float>(world, 100'003, ReduceOp::kSum);
    reductions<f16>(world, 150'001, ReduceOp::kMin);
    movements<std::int32_t>(world, 70'001);
    uneven_movements<std::int16_t>(world, 70'001);
    std::vector<float> data = values<float>(world.rank(), 0, 2'500'001);  // cut into segments
    world.all_reduce(data.data(), data.data(), data.size(), DataType::kF32, ReduceOp::kSum).value();
    expect_same(data, reduced<float>(ReduceOp::kSum, 0, world.size(), 0, data.size()), "pipelined all_reduce");
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, EveryCall, testing::Range(1, 6));

TEST(Collectives, RunByEveryAlgorithmThatIsAskedFor) {
  Ranks ranks(4);
  ranks.run([](const Group& world) {
    for (const char* name : {"ring", "pipelined_ring", "halving_doubling", "recursive_doubling", "tree", "rank_ordered", "direct"}) {
      for (const std::uint64_t count : {5, 50'000}) {
        std::vector<std::int32_t> data = values<std::int32_t>(world.rank(), 0, count);
        world.all_reduce(data.data(), data.data(), count, DataType::kI32, ReduceOp::kSum, {.algorithm = name}).value();
        expect_same(data, reduced<std::int32_t>(ReduceOp::kSum, 0, 4, 0, count), name);
      }
    }
    int x = 0;
    const auto unknown = world.all_reduce(&x, &x, 1, DataType::kI32, ReduceOp::kSum, {.algorithm = "magic"});
    EXPECT_FALSE(unknown);
  });
}

TEST(Collectives, AverageAndUserOps) {
  Ranks ranks(3);
  ranks.run([](const Group& world) {
    std::vector<std::int32_t> data(5, world.rank() * 3);
    world.all_reduce(data.data(), data.data(), 5, DataType::kI32, ReduceOp::kAvg).value();
    EXPECT_EQ(data, std::vector<std::int32_t>(5, 3));
    // Keeps the first: does not commute.
    const UserOp first =
        user_op<std::int32_t>("first", false, [](auto left, auto, auto out) { std::copy(left.begin(), left.end(), out.begin()); });
    for (const std::uint64_t count : {5, 60'001}) {
      std::vector<std::int32_t> mine(count, world.rank() + 7);
      world.all_reduce(mine.data(), mine.data(), count, DataType::kI32, first).value();
      EXPECT_EQ(mine, std::vector<std::int32_t>(count, 7));
    }
  });
}

TEST(Collectives, ManyInFlightEndInAnotherOrder) {
  Ranks ranks(3);
  ranks.run([](const Group& world) {
    constexpr int kInFlight = 64;
    std::vector<std::vector<float>> buffers;
    std::vector<Operation> operations;
    buffers.reserve(kInFlight);
    for (int i = 0; i < kInFlight; ++i) {
      buffers.push_back(values<float>(world.rank(), static_cast<std::uint64_t>(i), i % 4 == 0 ? 40'000 : 10));
      operations.push_back(
          world.start_all_reduce(buffers.back().data(), buffers.back().data(), buffers.back().size(), DataType::kF32, ReduceOp::kSum));
    }
    for (int i = kInFlight - 1; i >= 0; --i) {
      const auto at = static_cast<std::size_t>(i);
      operations[at].wait().value();
      expect_same(buffers[at], reduced<float>(ReduceOp::kSum, 0, 3, at, buffers[at].size()), "in flight");
    }
  });
}

// In memory calls have their turn one after the other, and the last waits for longer than any of them may stand still.
TEST(Collectives, WaitForTheirTurnWithoutGivingUp) {
  Config config;
  config.transport = Transport::kShm;
  config.progress_timeout = 2s;
  Ranks ranks(2, config);
  ranks.run([&](const Group& world) {
    constexpr std::size_t kCalls = 12;
    const bool is_slow = world.rank() == 1;
    const UserOp slow_sum = user_op<std::int32_t>("slow_sum", true, [=](auto left, auto right, auto out) {
      if (is_slow) std::this_thread::sleep_for(250ms);  // so that the other asks what has become of it
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = left[i] + right[i];
    });
    std::vector<std::int32_t> values(kCalls, world.rank() + 1);
    std::vector<Operation> operations;
    for (std::int32_t& value : values) operations.push_back(world.start_all_reduce(&value, &value, 1, DataType::kI32, slow_sum));
    for (Operation& operation : operations) operation.wait().value();
    EXPECT_EQ(values, std::vector<std::int32_t>(kCalls, 3));
  });
}

// A rank that is ahead uses up all the credit there is with operations that the other has not entered; what the other needs comes all the
// same, in whatever order it needs it.
TEST(Collectives, ARankThatIsFarAheadHoldsNobodyUp) {
  Ranks ranks(2);
  std::atomic<bool> ahead = false;
  ranks.run([&](const Group& world) {
    constexpr std::size_t kCalls = 3000;  // three times the messages of the credit
    std::vector<std::int32_t> values(kCalls, world.rank() + 1);
    std::vector<Operation> operations;
    if (world.rank() == 1)
      while (!ahead) std::this_thread::sleep_for(1ms);
    for (std::size_t i = 0; i < kCalls; ++i)
      operations.push_back(world.start_all_reduce(&values[i], &values[i], 1, DataType::kI32, ReduceOp::kSum));
    ahead = true;
    for (std::size_t i = 0; i < kCalls; ++i) {
      operations[i].wait().value();
      ASSERT_EQ(values[i], 3);
    }
    for (int i = 0; i < 3000; ++i) world.barrier().value();  // the credit is there again
  });
}

// The first operation needs several messages of rank 0, which has used up its credit for later operations before it could send them.
TEST(Collectives, AnOperationGetsWhatItNeedsHoweverFarOthersAreAhead) {
  Ranks ranks(3);
  std::latch ahead(2);
  ranks.run([&](const Group& world) {
    constexpr std::size_t kCalls = 1500;
    std::vector<std::int32_t> first(30, 1);
    std::vector<std::int32_t> later(kCalls, world.rank());
    std::vector<Operation> operations;
    const auto start_first = [&] {
      return world.start_all_reduce(first.data(), first.data(), first.size(), DataType::kI32, ReduceOp::kSum, {.algorithm = "ring"});
    };
    if (world.rank() == 2) ahead.arrive_and_wait();
    operations.push_back(start_first());
    if (world.rank() != 0) operations.front().wait().value();
    for (std::int32_t& one : later) operations.push_back(world.start_broadcast(&one, 1, DataType::kI32, 0));
    if (world.rank() == 0) ahead.arrive_and_wait();
    for (Operation& operation : operations) operation.wait().value();
    EXPECT_EQ(first, std::vector<std::int32_t>(30, 3));
    EXPECT_EQ(later, std::vector<std::int32_t>(kCalls, 0));
  });
}

TEST(Collectives, CalledFromTwoThreadsAtOnceAreRefused) {
  Ranks ranks(1);
  const Group world = ranks.node(0).world();
  std::atomic<bool> inside = false;
  std::atomic<bool> refused = false;
  std::thread first([&] {
    int x = 0;
    world
        .all_reduce_rs_ag(&x, 1, DataType::kI32, ReduceOp::kSum,
                          [&](void*, std::uint64_t, std::uint64_t) {
                            inside = true;
                            while (!refused) std::this_thread::yield();
                          })
        .value();
  });
  while (!inside) std::this_thread::yield();
  const Result<void> second = world.barrier();
  refused = true;
  first.join();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(world.barrier());
}

}  // namespace
}  // namespace nexar::test
