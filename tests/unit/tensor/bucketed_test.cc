// Many tensors in few operations.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "nexar/gradient_bucketer.h"
#include "nexar/node.h"
#include "nexar/small_float.h"
#include "plan/algorithms.h"
#include "tensor/ranks.h"

namespace nexar {
namespace {

using test::on_all_ranks;
using Tensor = std::vector<std::int32_t>;

Tensor given(Rank rank, std::size_t tensor, std::uint64_t count) {
  Tensor numbers(count);
  for (std::uint64_t i = 0; i < count; ++i)
    numbers[i] = static_cast<std::int32_t>((i % 977) * 10 + tensor + static_cast<std::size_t>(rank) * 100000);
  return numbers;
}

Tensor sum_of(int ranks, std::size_t tensor, std::uint64_t count) {
  Tensor total(count);
  for (Rank r = 0; r < ranks; ++r) {
    const Tensor one = given(r, tensor, count);
    for (std::uint64_t i = 0; i < count; ++i) total[i] += one[i];
  }
  return total;
}

struct Tensors {
  Tensors(Rank rank, const std::vector<std::uint64_t>& counts) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      all.push_back(given(rank, i, counts[i]));
      views.push_back({all.back().data(), counts[i]});
    }
  }

  void expect_sums(int ranks) const {
    for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], sum_of(ranks, i, all[i].size())) << i;
  }

  std::deque<Tensor> all;
  std::vector<TensorView> views;
};

class BucketedTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { nodes = Node::local(GetParam()).value(); }
  std::vector<Node> nodes;
};

TEST_P(BucketedTest, MixedSizesAsIfEachWereReducedAlone) {
  on_all_ranks(nodes, [](const Group& world) {
    for (const std::vector<std::uint64_t>& counts : {std::vector<std::uint64_t>{},
                                                     {0},
                                                     {1},
                                                     {0, 5, 0, 0, 7, 1},
                                                     {3, 300000, 4, 5},
                                                     {262143, 262144, 262145, 1},
                                                     std::vector<std::uint64_t>(300, 33)}) {
      Tensors tensors(world.rank(), counts);
      ASSERT_TRUE(world.all_reduce_bucketed(tensors.views, DataType::kI32, ReduceOp::kSum));
      tensors.expect_sums(world.size());

      Tensors again(world.rank(), counts);
      Operation operation = world.start_all_reduce_bucketed(again.views, DataType::kI32, ReduceOp::kSum);
      again.views.clear();  // the list is read during the call only
      ASSERT_TRUE(operation.wait());
      again.expect_sums(world.size());
    }
  });
}

TEST_P(BucketedTest, NeighboursInMemoryAndLargeOnesTakeNothingOfThePool) {
  on_all_ranks(nodes, [](const Group& world) {
    Tensor whole = given(world.rank(), 0, 1000);
    const std::vector<TensorView> parts = {{whole.data(), 10}, {whole.data() + 10, 90}, {whole.data() + 100, 900}};
    ASSERT_TRUE(world.all_reduce_bucketed(parts, DataType::kI32, ReduceOp::kSum));
    EXPECT_EQ(whole, sum_of(world.size(), 0, 1000));
    Tensor large = given(world.rank(), 1, 300000);
    const std::vector<TensorView> one = {{large.data(), large.size()}};
    ASSERT_TRUE(world.all_reduce_bucketed(one, DataType::kI32, ReduceOp::kSum));
    EXPECT_EQ(world.pool()->counters().taken, 0u);
  });
}

TEST_P(BucketedTest, ByAnOpOfTheApplicationsAndByANamedAlgorithm) {
  const UserOp add = user_op<std::int32_t>("add", true, [](auto left, auto right, auto out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = left[i] + right[i];
  });
  on_all_ranks(nodes, [&](const Group& world) {
    Tensors by_op(world.rank(), {5, 70000, 3, 1});
    ASSERT_TRUE(world.all_reduce_bucketed(by_op.views, DataType::kI32, add));
    by_op.expect_sums(world.size());
    Tensors by_name(world.rank(), {5, 70000, 3, 1});
    ASSERT_TRUE(world.all_reduce_bucketed(by_name.views, DataType::kI32, ReduceOp::kSum, {.algorithm = "ring"}));
    by_name.expect_sums(world.size());
  });
}

TEST(Bucketed, MoreThanFitsIsReducedAPartAtATime) {
  LocalOptions options;
  options.config.memory_budget = 80 << 20;  // four runs of 16 MiB, and no more
  options.config.transport = Transport::kNet;
  const std::vector<Node> nodes = Node::local(2, options).value();
  on_all_ranks(nodes, [](const Group& world) {
    Tensors tensors(world.rank(), std::vector<std::uint64_t>(100, 250000));  // 95 MiB
    ASSERT_TRUE(world.all_reduce_bucketed(tensors.views, DataType::kI32, ReduceOp::kSum));
    tensors.expect_sums(world.size());
    EXPECT_LE(world.pool()->counters().peak, 64u << 20);
    EXPECT_EQ(world.pool()->counters().in_use, 0u);
  });
}

TEST_P(BucketedTest, ABucketerReducesBucketsWhileMoreAreAdded) {
  on_all_ranks(nodes, [](const Group& world) {
    GradientBucketer bucketer(world, DataType::kI32, ReduceOp::kSum, {.bucket_bytes = 4000, .in_flight_max = 2});
    ASSERT_TRUE(bucketer.finish());
    for (int step = 0; step < 3; ++step) {
      std::vector<std::uint64_t> counts;
      for (std::uint64_t i = 0; i < 60; ++i) counts.push_back(i * 7 % 400);
      Tensors tensors(world.rank(), counts);
      std::size_t most = 0;
      for (const TensorView& view : tensors.views) {
        ASSERT_TRUE(bucketer.add(view.data, view.count));
        most = std::max(most, bucketer.in_flight());
      }
      EXPECT_EQ(most, 2u);
      ASSERT_TRUE(bucketer.finish());
      EXPECT_EQ(bucketer.in_flight(), 0u);
      tensors.expect_sums(world.size());
    }
  });
}

TEST(Bucketed, ManyLargeMessagesAtOnceTakeNothingOfThePool) {
  LocalOptions options;
  options.config.memory_budget = 8 << 20;
  options.config.transport = Transport::kNet;
  const std::vector<Node> nodes = Node::local(2, options).value();
  on_all_ranks(nodes, [](const Group& world) {
    Tensors tensors(world.rank(), std::vector<std::uint64_t>(50, 200000));
    ASSERT_TRUE(world.start_all_reduce_bucketed(tensors.views, DataType::kI32, ReduceOp::kSum).wait());
    tensors.expect_sums(2);
    EXPECT_EQ(world.pool()->counters().taken, 0u);
  });
}

// Crumbs are gathered before they are sent.
TEST(Bucketed, WhatIsGatheredAndDoesNotFitIsRefusedOnAllRanks) {
  LocalOptions options;
  options.config.memory_budget = 8 << 20;
  options.config.transport = Transport::kNet;
  const std::vector<Node> nodes = Node::local(2, options).value();
  on_all_ranks(nodes, [](const Group& world) {
    Tensors tensors(world.rank(), std::vector<std::uint64_t>(30000, 100));
    const auto expect_refused = [](const auto& result) {
      ASSERT_FALSE(result);
      EXPECT_NE(result.error().to_string().find("do not fit a pool of 8388608"), std::string::npos) << result.error().to_string();
    };
    expect_refused(world.start_all_reduce_bucketed(tensors.views, DataType::kI32, ReduceOp::kSum).wait());
    expect_refused(world.all_reduce_bucketed(tensors.views, DataType::kI32, ReduceOp::kSum));
    EXPECT_EQ(world.pool()->counters().in_use, 0u);
    Tensors small(world.rank(), {5, 6});
    ASSERT_TRUE(world.all_reduce_bucketed(small.views, DataType::kI32, ReduceOp::kSum));
    small.expect_sums(2);
  });
}

TEST(Bucketed, OtherListsOfTheSameLengthAreAMismatch) {
  const std::vector<Node> nodes = Node::local(2).value();
  on_all_ranks(nodes, [](const Group& world) {
    Tensors tensors(world.rank(), world.rank() == 0 ? std::vector<std::uint64_t>{10, 20} : std::vector<std::uint64_t>{20, 10});
    const Result<void> result = world.all_reduce_bucketed(tensors.views, DataType::kI32, ReduceOp::kSum);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), ErrorCode::kMismatch) << result.error().to_string();
    EXPECT_NE(result.error().sentence().find("list of tensors"), std::string::npos) << result.error().to_string();
    ASSERT_TRUE(world.barrier());
  });
}

TEST(Bucketed, AnErrorInTheArgumentsOfOneRankIsNamedOnAllAndTheGroupGoesOn) {
  const std::vector<Node> nodes = Node::local(3).value();
  on_all_ranks(nodes, [](const Group& world) {
    Tensors tensors(world.rank(), {10, 300000, 20, 300000, 5});
    if (world.rank() == 1) tensors.views[2].data = nullptr;
    const Result<void> result = world.all_reduce_bucketed(tensors.views, DataType::kI32, ReduceOp::kSum);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), world.rank() == 1 ? ErrorCode::kInvalidArgument : ErrorCode::kCancelled);
    EXPECT_NE(result.error().to_string().find("a tensor is null and 20 elements long"), std::string::npos) << result.error().to_string();
    ASSERT_TRUE(world.barrier());
  });
}

TEST(Bucketed, ABucketerThatIsDroppedGivesTheTensorsBack) {
  for (const Transport transport : {Transport::kShm, Transport::kNet}) {
    LocalOptions options;
    options.config.transport = transport;
    const std::vector<Node> nodes = Node::local(2, options).value();
    const Group world = nodes[0].world();
    {
      std::vector<std::int32_t> memory(2000, 1);
      GradientBucketer bucketer(world, DataType::kI32, ReduceOp::kSum, {.bucket_bytes = 4000});
      ASSERT_TRUE(bucketer.add(memory.data(), 600));
      ASSERT_TRUE(bucketer.add(memory.data() + 700, 600));
      EXPECT_EQ(bucketer.in_flight(), 1u);
    }
    EXPECT_EQ(world.pool()->counters().in_use, 0u);
  }
}

TEST(Bucketed, ANodesPoolMayBeShared) {
  LocalOptions options;
  options.config.transport = Transport::kNet;
  options.pool = BufferPool::make(1 << 20);
  const std::vector<Node> nodes = Node::local(3, options).value();
  on_all_ranks(nodes, [](const Group& world) {
    Tensors tensors(world.rank(), {10, 20});
    ASSERT_TRUE(world.all_reduce_bucketed(tensors.views, DataType::kI32, ReduceOp::kSum));
    tensors.expect_sums(3);
  });
  EXPECT_EQ(options.pool->counters().taken, 3u);
  EXPECT_EQ(options.pool->counters().in_use, 0u);
}

// The others never come; the tensors are freed right after.
TEST(Bucketed, ADeadlineInTheMiddleGivesTheTensorsBack) {
  LocalOptions options;
  options.config.transport = Transport::kNet;
  const std::vector<Node> nodes = Node::local(3, options).value();
  const auto late = [](const Group& world, const std::vector<std::uint64_t>& counts) {
    Tensors tensors(world.rank(), counts);
    const Result<void> result =
        world.all_reduce_bucketed(tensors.views, DataType::kI32, ReduceOp::kSum, {.deadline = std::chrono::milliseconds(50)});
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().to_string().find("deadline"), std::string::npos) << result.error().to_string();
  };
  for (const std::vector<std::uint64_t>& counts : {std::vector<std::uint64_t>(10, 7), std::vector<std::uint64_t>(500, 1000)}) {
    std::thread other([&] { late(nodes[1].world(), counts); });
    late(nodes[0].world(), counts);
    other.join();
    EXPECT_EQ(nodes[0].world().pool()->counters().in_use, 0u);
    // Who comes now learns that it is over.
    Tensors tensors(2, counts);
    EXPECT_FALSE(nodes[2].world().all_reduce_bucketed(tensors.views, DataType::kI32, ReduceOp::kSum));
  }
  on_all_ranks(nodes, [](const Group& world) {
    Tensors tensors(world.rank(), {10, 20, 100000, 5});
    ASSERT_TRUE(world.all_reduce_bucketed(tensors.views, DataType::kI32, ReduceOp::kSum));
    tensors.expect_sums(3);
  });
}

// Small whole numbers, whose sums of four are exact in every type.
template <typename T>
T value(std::uint64_t number) {
  return T(static_cast<float>(number));
}

template <typename T>
void expect_the_same_as_of_one_buffer(const Group& world, DataType type, const std::vector<std::uint64_t>& counts, bool blocks) {
  std::deque<std::vector<T>> tensors;
  std::vector<TensorView> views;
  std::vector<T> whole, sum;
  for (const std::uint64_t count : counts) {
    std::vector<T>& tensor = tensors.emplace_back();
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto given = [&](Rank rank) { return (whole.size() * 7 + i * 3 + static_cast<std::uint64_t>(rank)) % 50; };
      tensor.push_back(value<T>(given(world.rank())));
      std::uint64_t total = 0;
      for (Rank rank = 0; rank < world.size(); ++rank) total += given(rank);
      sum.push_back(value<T>(total));
    }
    whole.insert(whole.end(), tensor.begin(), tensor.end());
    views.push_back({tensor.data(), count});
  }
  if (blocks)
    ASSERT_TRUE(world.all_reduce_bucketed(views, type, ReduceOp::kSum));
  else
    ASSERT_TRUE(world.start_all_reduce_bucketed(views, type, ReduceOp::kSum).wait());
  ASSERT_TRUE(world.all_reduce(whole.data(), whole.data(), whole.size(), type, ReduceOp::kSum));
  ASSERT_EQ(std::memcmp(whole.data(), sum.data(), sum.size() * sizeof(T)), 0);
  std::size_t at = 0;
  for (const std::vector<T>& tensor : tensors) {
    ASSERT_EQ(std::memcmp(tensor.data(), sum.data() + at, tensor.size() * sizeof(T)), 0) << "the tensor that begins at element " << at;
    at += tensor.size();
  }
}

class BucketedLists : public testing::TestWithParam<std::tuple<int, Transport>> {};

TEST_P(BucketedLists, OfAnySizesGiveWhatOneBufferGives) {
  LocalOptions options;
  options.config.transport = std::get<1>(GetParam());
  const std::vector<Node> nodes = Node::local(std::get<0>(GetParam()), options).value();
  on_all_ranks(nodes, [](const Group& world) {
    std::mt19937_64 random(7);  // the same lists on all ranks
    for (int list = 0; list < 24; ++list) {
      std::vector<std::uint64_t> counts(random() % 40);
      for (std::uint64_t& count : counts)
        count = std::vector<std::uint64_t>{0, 1, 2 * (random() % 500) + 1, random() % 20000}[random() % 4];
      if (list == 0) counts.assign(70, 65001);       // more than one run: 17 MiB of f32
      if (list == 1) counts = {5, 300000, 1, 7, 9};  // of which one is a run of its own
      const bool blocks = list % 2 == 0;
      switch (list % 3) {
        case 0: expect_the_same_as_of_one_buffer<float>(world, DataType::kF32, counts, blocks); break;
        case 1: expect_the_same_as_of_one_buffer<std::int32_t>(world, DataType::kI32, counts, blocks); break;
        default: expect_the_same_as_of_one_buffer<bf16>(world, DataType::kBf16, counts, blocks);
      }
      if (testing::Test::HasFatalFailure()) return;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, BucketedLists, testing::Combine(testing::Range(1, 5), testing::Values(Transport::kShm, Transport::kNet)),
                         [](const auto& ranks) {
                           return std::to_string(std::get<0>(ranks.param)) + (std::get<1>(ranks.param) == Transport::kShm ? "Shm" : "Net");
                         });

// Numbers that are whole and small on the way and in the end, also of an average.
template <typename T>
void expect_serial(const Group& world, DataType type, const Reduction& op, const std::vector<std::uint64_t>& counts,
                   const std::string& by) {
  const auto size = static_cast<std::uint64_t>(world.size());
  const auto given = [&](Rank rank, std::uint64_t at) { return (at * 7 + static_cast<std::uint64_t>(rank) * 5) % 3 * size; };
  std::deque<std::vector<T>> tensors;
  std::vector<TensorView> views;
  std::uint64_t at = 0;
  for (const std::uint64_t count : counts) {
    std::vector<T>& tensor = tensors.emplace_back();
    for (std::uint64_t i = 0; i < count; ++i) tensor.push_back(value<T>(given(world.rank(), at++)));
    views.push_back({tensor.data(), count});
  }
  const Result<void> reduced = world.all_reduce_bucketed(views, type, op, {.algorithm = by});
  ASSERT_TRUE(reduced) << by << ": " << reduced.error().to_string();
  at = 0;
  for (const std::vector<T>& tensor : tensors)
    for (const T& element : tensor) {
      std::uint64_t sum = 0;
      for (Rank rank = 0; rank < world.size(); ++rank) sum += given(rank, at);
      const T expected = value<T>(op.user_op() == nullptr && op.op() == ReduceOp::kAvg ? sum / size : sum);
      ASSERT_EQ(std::memcmp(&element, &expected, sizeof(T)), 0) << by << ", " << to_string(type) << ", element " << at;
      ++at;
    }
}

class BucketedAlgorithms : public testing::TestWithParam<int> {};

TEST_P(BucketedAlgorithms, OverTheNetworkGiveWhatASerialProgramGives) {
  LocalOptions options;
  options.config.transport = Transport::kNet;
  options.config.reproducible = GetParam() == 6;
  const std::vector<Node> nodes = Node::local(GetParam(), options).value();
  const UserOp add = user_op<std::int32_t>("add", false, [](auto left, auto right, auto out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = left[i] + right[i];
  });
  on_all_ranks(nodes, [&](const Group& world) {
    std::mt19937_64 random(11);  // the same lists on all ranks
    const auto list = [&](std::uint64_t tensors, std::uint64_t longest) {
      std::vector<std::uint64_t> counts(tensors);
      for (std::uint64_t& count : counts) count = random() % longest | 1;
      return counts;
    };
    plan::Shape shape{.operation = OperationId::kAllReduce, .rank = world.rank(), .size = world.size(), .count = 1000};
    shape.in_place = true;
    shape.reproducible = world.config().reproducible;
    for (const plan::Algorithm& algorithm : plan::algorithms_of(OperationId::kAllReduce)) {
      if (!algorithm.legal(shape)) continue;
      const std::string by(algorithm.name);
      expect_serial<f16>(world, DataType::kF16, ReduceOp::kSum, list(40, 90), by);
      expect_serial<bf16>(world, DataType::kBf16, ReduceOp::kAvg, list(40, 900), by);
      expect_serial<double>(world, DataType::kF64, ReduceOp::kAvg, list(3, 3), by);
      expect_serial<float>(world, DataType::kF32, ReduceOp::kSum, list(60, 9000), by);
      expect_serial<std::uint8_t>(world, DataType::kU8, ReduceOp::kSum, list(2000, 20), by);
      if (algorithm.has(plan::kOrdered)) expect_serial<std::int32_t>(world, DataType::kI32, add, list(50, 1500), by);
      if (testing::Test::HasFatalFailure()) return;
    }
    expect_serial<float>(world, DataType::kF32, ReduceOp::kAvg, list(300, 3000), "");
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, BucketedAlgorithms, testing::Range(1, 10), [](const auto& ranks) { return std::to_string(ranks.param); });

INSTANTIATE_TEST_SUITE_P(Ranks, BucketedTest, testing::Values(1, 2, 3, 5), [](const auto& ranks) { return std::to_string(ranks.param); });

}  // namespace
}  // namespace nexar
