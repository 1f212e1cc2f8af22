// Every collective between real nodes, over real links, against a serial oracle.
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collectives_oracle.h"
#include "ranks.h"

namespace nexar::test {
namespace {

using namespace std::chrono_literals;

template <typename T>
void expect_same(const std::vector<T>& got, const std::vector<T>& wanted, const char* what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  EXPECT_EQ(std::memcmp(got.data(), wanted.data(), got.size() * sizeof(T)), 0) << what;
}

template <typename T>
void reductions(const Group& group, std::uint64_t count, ReduceOp op) {
  const Rank n = group.size();
  const Rank rank = group.rank();
  constexpr DataType kType = data_type_of<T>;
  const std::uint64_t all = count * static_cast<std::uint64_t>(n);

  std::vector<T> got(count);
  group.all_reduce(values<T>(rank, 0, count).data(), got.data(), count, kType, op).value();
  expect_same(got, reduced<T>(op, 0, n, 0, count), "all_reduce");

  got = values<T>(rank, 0, count);
  group.all_reduce(got.data(), got.data(), count, kType, op).value();
  expect_same(got, reduced<T>(op, 0, n, 0, count), "all_reduce in place");

  got.assign(count, T{});
  group.reduce_scatter(values<T>(rank, 0, all).data(), got.data(), count, kType, op).value();
  expect_same(got, reduced<T>(op, 0, n, count * static_cast<std::uint64_t>(rank), count), "reduce_scatter");

  got.assign(count, T{});
  group.reduce(values<T>(rank, 0, count).data(), rank == n - 1 ? got.data() : nullptr, count, kType, op, n - 1).value();
  if (rank == n - 1) expect_same(got, reduced<T>(op, 0, n, 0, count), "reduce");

  got.assign(count, T{});
  group.scan(values<T>(rank, 0, count).data(), got.data(), count, kType, op).value();
  expect_same(got, reduced<T>(op, 0, rank + 1, 0, count), "scan");

  got = values<T>(rank, 0, count);
  group.exclusive_scan(got.data(), got.data(), count, kType, op).value();
  if (rank > 0) expect_same(got, reduced<T>(op, 0, rank, 0, count), "exclusive_scan");

  std::vector<std::uint64_t> counts;
  std::uint64_t before = 0;
  std::uint64_t total = 0;
  for (Rank one = 0; one < n; ++one) {
    counts.push_back(one == 1 ? 0 : count + static_cast<std::uint64_t>(one));
    if (one < rank) before += counts.back();
    total += counts.back();
  }
  got.assign(counts[static_cast<std::size_t>(rank)], T{});
  group.reduce_scatter_v(values<T>(rank, 0, total).data(), got.data(), counts, kType, op).value();
  expect_same(got, reduced<T>(op, 0, n, before, got.size()), "reduce_scatter_v");

  got = values<T>(rank, 0, count);
  std::uint64_t middles = 0;
  group.all_reduce_rs_ag(got.data(), count, kType, op, [&](void*, std::uint64_t, std::uint64_t chunk) { middles += chunk; }).value();
  expect_same(got, reduced<T>(op, 0, n, 0, count), "all_reduce_rs_ag");
  EXPECT_EQ(middles, count / static_cast<std::uint64_t>(n) + (static_cast<std::uint64_t>(rank) < count % static_cast<std::uint64_t>(n)));
}

template <typename T>
void movements(const Group& group, std::uint64_t count) {
  const Rank n = group.size();
  const Rank rank = group.rank();
  const auto slot = static_cast<std::uint64_t>(rank) * count;
  constexpr DataType kType = data_type_of<T>;
  const Rank root = n / 2;
  const std::uint64_t all = count * static_cast<std::uint64_t>(n);
  std::vector<T> gathered;
  for (Rank one = 0; one < n; ++one) {
    const std::vector<T> theirs = values<T>(one, 0, count);
    gathered.insert(gathered.end(), theirs.begin(), theirs.end());
  }

  std::vector<T> got(all);
  group.all_gather(values<T>(rank, 0, count).data(), got.data(), count, kType).value();
  expect_same(got, gathered, "all_gather");
  got.assign(all, T{});
  std::copy_n(gathered.begin() + static_cast<std::ptrdiff_t>(slot), count, got.begin() + static_cast<std::ptrdiff_t>(slot));
  group.all_gather(got.data() + slot, got.data(), count, kType).value();
  expect_same(got, gathered, "all_gather in place");

  got = rank == root ? values<T>(root, 0, count) : std::vector<T>(count);
  group.broadcast(got.data(), count, kType, root).value();
  expect_same(got, values<T>(root, 0, count), "broadcast");

  got.assign(rank == root ? all : 0, T{});
  group.gather(values<T>(rank, 0, count).data(), got.data(), count, kType, root).value();
  if (rank == root) expect_same(got, gathered, "gather");

  got.assign(count, T{});
  group.scatter(rank == root ? values<T>(root, 0, all).data() : nullptr, got.data(), count, kType, root).value();
  expect_same(got, values<T>(root, slot, count), "scatter");

  got.assign(all, T{});
  group.all_to_all(values<T>(rank, 0, all).data(), got.data(), count, kType).value();
  std::vector<T> wanted;
  for (Rank one = 0; one < n; ++one) {
    const std::vector<T> theirs = values<T>(one, slot, count);
    wanted.insert(wanted.end(), theirs.begin(), theirs.end());
  }
  expect_same(got, wanted, "all_to_all");
  group.barrier().value();
}

// Rank r has count + r elements, rank 1 none.
template <typename T>
void uneven_movements(const Group& group, std::uint64_t count) {
  const Rank n = group.size();
  const Rank rank = group.rank();
  constexpr DataType kType = data_type_of<T>;
  std::vector<std::uint64_t> counts;
  std::vector<T> gathered;
  std::uint64_t before = 0;
  for (Rank one = 0; one < n; ++one) {
    counts.push_back(one == 1 ? 0 : count + static_cast<std::uint64_t>(one));
    if (one < rank) before += counts.back();
    const std::vector<T> theirs = values<T>(one, 0, counts.back());
    gathered.insert(gathered.end(), theirs.begin(), theirs.end());
  }
  const std::uint64_t own = counts[static_cast<std::size_t>(rank)];

  std::vector<T> got(gathered.size());
  group.all_gather_v(values<T>(rank, 0, own).data(), got.data(), counts, kType).value();
  expect_same(got, gathered, "all_gather_v");

  const auto& at_root = rank == 0 ? counts : std::vector<std::uint64_t>();
  got.assign(rank == 0 ? gathered.size() : 0, T{});
  group.gather_v(values<T>(rank, 0, own).data(), own, got.data(), at_root, kType, 0).value();
  if (rank == 0) expect_same(got, gathered, "gather_v");

  got.assign(own, T{});
  group.scatter_v(values<T>(0, 0, gathered.size()).data(), at_root, got.data(), own, kType, 0).value();
  expect_same(got, values<T>(0, before, own), "scatter_v");

  // To rank j go counts[j] elements, from everybody.
  std::vector<std::uint64_t> from_each(static_cast<std::size_t>(n), own);
  got.assign(own * static_cast<std::uint64_t>(n), T{});
  group.all_to_all_v(values<T>(rank, 0, gathered.size()).data(), counts, got.data(), from_each, kType).value();
  std::vector<T> wanted;
  for (Rank one = 0; one < n; ++one) {
    const std::vector<T> theirs = values<T>(one, before, own);
    wanted.insert(wanted.end(), theirs.begin(), theirs.end());
  }
  expect_same(got, wanted, "all_to_all_v");
}

std::vector<std::byte> string_of(Rank rank) { return std::vector<std::byte>(static_cast<std::size_t>(rank) * 40000, std::byte(rank)); }

void byte_strings(const Group& group) {
  const Rank n = group.size();
  const std::vector<std::byte> mine = string_of(group.rank());
  EXPECT_EQ(group.broadcast_bytes(mine, n - 1).value(), string_of(n - 1));
  const std::vector<std::vector<std::byte>> all = group.all_gather_bytes(mine).value();
  ASSERT_EQ(all.size(), static_cast<std::size_t>(n));
  for (Rank one = 0; one < n; ++one) EXPECT_EQ(all[static_cast<std::size_t>(one)], string_of(one));
  EXPECT_EQ(group.gather_bytes(mine, 0).value().size(), group.rank() == 0 ? static_cast<std::size_t>(n) : 0);
  Operation started = group.start_gather_bytes(mine, n - 1);
  ASSERT_TRUE(started.wait());
  const std::vector<std::vector<std::byte>> taken = started.take_strings();
  if (group.rank() == n - 1) {
    EXPECT_EQ(taken, all);
  }
}

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
    const UserOp first = user_op<std::int32_t>("first", false, [](auto left, auto, auto out) { std::copy(left.begin(), left.end(), out.begin()); });
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

TEST(Collectives, CalledFromTwoThreadsAtOnceAreRefused) {
  Ranks ranks(1);
  const Group world = ranks.node(0).world();
  std::atomic<bool> inside = false;
  std::atomic<bool> refused = false;
  std::thread first([&] {
    int x = 0;
    world.all_reduce_rs_ag(&x, 1, DataType::kI32, ReduceOp::kSum, [&](void*, std::uint64_t, std::uint64_t) {
      inside = true;
      while (!refused) std::this_thread::yield();
    }).value();
  });
  while (!inside) std::this_thread::yield();
  const Result<void> second = world.barrier();
  refused = true;
  first.join();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(world.barrier());
}

TEST(Collectives, ManySmallOnes) {
  Ranks ranks(2);
  ranks.run([](const Group& world) {
    for (int i = 0; i < 10'000; ++i) {
      std::int64_t x = world.rank() + i;
      world.all_reduce(&x, &x, 1, DataType::kI64, ReduceOp::kSum).value();
      ASSERT_EQ(x, 2 * i + 1);
    }
  });
}

}  // namespace
}  // namespace nexar::test
