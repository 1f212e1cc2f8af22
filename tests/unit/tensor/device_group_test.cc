// Every collective over a device that completes late, out of order and sometimes with an error, against what it should be.
#include "nexar/device_group.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "nexar/node.h"
#include "tensor/ranks.h"
#include "tensor/rig.h"

namespace nexar {
namespace {

using test::append;
using test::given;
using test::kSmallPieces;
using test::Numbers;
using test::on_all_ranks;
using test::part;
using test::Rig;
using test::sum_of;

class DeviceGroupTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { nodes = Node::local(GetParam()).value(); }

  // For counts around what is interesting.
  void for_counts(const std::function<void(Rig& rig, std::uint64_t count)>& work) {
    const auto n = static_cast<std::uint64_t>(GetParam());
    on_all_ranks(nodes, [&](const Group& world) {
      for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, n - 1, n, n + 1, std::uint64_t{53}}) {
        Rig rig(world);
        work(rig, count);
        EXPECT_EQ(rig.adapter->pending(), 0u);
      }
    });
  }

  std::vector<Node> nodes;
};

constexpr DataType kType = DataType::kI64;

TEST_P(DeviceGroupTest, Reductions) {
  for_counts([](Rig& rig, std::uint64_t count) {
    const Buffer<Device> in_place = rig.put(given(rig.rank, count));
    ASSERT_TRUE(rig.group.all_reduce(in_place, count, kType, ReduceOp::kSum));
    EXPECT_EQ(rig.get(in_place), sum_of(rig.size, count));

    const Buffer<Device> send = rig.put(given(rig.rank, count));
    const Buffer<Device> recv = rig.room(count);
    ASSERT_TRUE(rig.group.all_reduce(send, recv, count, kType, ReduceOp::kSum));
    EXPECT_EQ(rig.get(recv), sum_of(rig.size, count));
    EXPECT_EQ(rig.get(send), given(rig.rank, count));

    for (const Rank root : {0, rig.size - 1}) {
      const bool is_root = rig.rank == root;
      const Buffer<Device> at_root = is_root ? rig.room(count) : Buffer<Device>();
      ASSERT_TRUE(rig.group.reduce(send, at_root, count, kType, ReduceOp::kSum, root));
      if (is_root) {
        EXPECT_EQ(rig.get(at_root), sum_of(rig.size, count));
      }
    }

    const Buffer<Device> scanned = rig.room(count);
    ASSERT_TRUE(rig.group.scan(send, scanned, count, kType, ReduceOp::kSum));
    EXPECT_EQ(rig.get(scanned), sum_of(rig.rank + 1, count));
    ASSERT_TRUE(rig.group.exclusive_scan(send, scanned, count, kType, ReduceOp::kSum));
    EXPECT_EQ(rig.get(scanned), sum_of(rig.rank, count));
  });
}

TEST_P(DeviceGroupTest, ReduceScatter) {
  for_counts([](Rig& rig, std::uint64_t count) {
    const auto n = static_cast<std::uint64_t>(rig.size);
    const auto me = static_cast<std::uint64_t>(rig.rank);
    const Buffer<Device> send = rig.put(given(rig.rank, count * n));
    const Buffer<Device> recv = rig.room(count);
    ASSERT_TRUE(rig.group.reduce_scatter(send, recv, count, kType, ReduceOp::kSum));
    EXPECT_EQ(rig.get(recv), part(sum_of(rig.size, count * n), me * count, count));

    std::vector<std::uint64_t> counts(n);
    for (std::uint64_t r = 0; r < n; ++r) counts[r] = count * (r % 3);
    const std::uint64_t total = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
    const std::uint64_t before = std::accumulate(counts.begin(), counts.begin() + rig.rank, std::uint64_t{0});
    const Buffer<Device> send_v = rig.put(given(rig.rank, total));
    const Buffer<Device> recv_v = rig.room(counts[me]);
    ASSERT_TRUE(rig.group.reduce_scatter_v(send_v, recv_v, counts, kType, ReduceOp::kSum));
    EXPECT_EQ(rig.get(recv_v), part(sum_of(rig.size, total), before, counts[me]));
  });
}

TEST_P(DeviceGroupTest, TwoHalvesWithTheMiddleInHostMemory) {
  for_counts([](Rig& rig, std::uint64_t count) {
    const Buffer<Device> buffer = rig.put(given(rig.rank, count));
    std::uint64_t seen = 0;
    const auto negate = [&seen](void* elements, std::uint64_t first, std::uint64_t n) {
      seen += n;
      for (std::uint64_t i = 0; i < n; ++i) {
        std::int64_t& element = static_cast<std::int64_t*>(elements)[i];
        element = -element + static_cast<std::int64_t>(first + i);
      }
    };
    ASSERT_TRUE(rig.group.all_reduce_rs_ag(buffer, count, kType, ReduceOp::kSum, negate));
    Numbers expected = sum_of(rig.size, count);
    for (std::uint64_t i = 0; i < count; ++i) expected[i] = -expected[i] + static_cast<std::int64_t>(i);
    EXPECT_EQ(rig.get(buffer), expected);
    std::uint64_t all = 0;
    ASSERT_TRUE(rig.group.group().all_reduce(&seen, &all, 1, DataType::kU64, ReduceOp::kSum));
    EXPECT_EQ(all, count);
  });
}

TEST_P(DeviceGroupTest, Broadcast) {
  for_counts([](Rig& rig, std::uint64_t count) {
    for (const Rank root : {0, rig.size - 1}) {
      const Buffer<Device> buffer = rig.put(given(rig.rank, count));
      ASSERT_TRUE(rig.group.broadcast(buffer, count, kType, root));
      EXPECT_EQ(rig.get(buffer), given(root, count));
    }
  });
}

TEST_P(DeviceGroupTest, Gathers) {
  for_counts([](Rig& rig, std::uint64_t count) {
    const auto n = static_cast<std::uint64_t>(rig.size);
    const auto me = static_cast<std::uint64_t>(rig.rank);
    Numbers expected;
    Numbers expected_v;
    std::vector<std::uint64_t> counts(n);
    for (Rank r = 0; r < rig.size; ++r) {
      counts[static_cast<std::size_t>(r)] = count * (static_cast<std::uint64_t>(r) % 3);
      append(expected, given(r, count));
      append(expected_v, given(r, counts[static_cast<std::size_t>(r)]));
    }
    const Buffer<Device> send = rig.put(given(rig.rank, count));
    const Buffer<Device> recv = rig.room(count * n);
    ASSERT_TRUE(rig.group.all_gather(send, recv, count, kType));
    EXPECT_EQ(rig.get(recv), expected);

    const Buffer<Device> send_v = rig.put(given(rig.rank, counts[me]));
    const Buffer<Device> recv_v = rig.room(expected_v.size());
    ASSERT_TRUE(rig.group.all_gather_v(send_v, recv_v, counts, kType));
    EXPECT_EQ(rig.get(recv_v), expected_v);

    const Rank root = rig.size / 2;
    const bool is_root = rig.rank == root;
    const Buffer<Device> at_root = is_root ? rig.room(count * n) : Buffer<Device>();
    ASSERT_TRUE(rig.group.gather(send, at_root, count, kType, root));
    if (is_root) {
      EXPECT_EQ(rig.get(at_root), expected);
    }

    const Buffer<Device> at_root_v = is_root ? rig.room(expected_v.size()) : Buffer<Device>();
    ASSERT_TRUE(rig.group.gather_v(send_v, counts[me], at_root_v, is_root ? counts : std::vector<std::uint64_t>(), kType, root));
    if (is_root) {
      EXPECT_EQ(rig.get(at_root_v), expected_v);
    }
  });
}

TEST_P(DeviceGroupTest, Scatters) {
  for_counts([](Rig& rig, std::uint64_t count) {
    const auto n = static_cast<std::uint64_t>(rig.size);
    const auto me = static_cast<std::uint64_t>(rig.rank);
    const Rank root = rig.size - 1;
    const bool is_root = rig.rank == root;
    const Numbers all = given(root, count * n);
    const Buffer<Device> send = is_root ? rig.put(all) : Buffer<Device>();
    const Buffer<Device> recv = rig.room(count);
    ASSERT_TRUE(rig.group.scatter(send, recv, count, kType, root));
    EXPECT_EQ(rig.get(recv), part(all, me * count, count));

    std::vector<std::uint64_t> counts(n);
    for (std::uint64_t r = 0; r < n; ++r) counts[r] = count * (r % 3);
    const std::uint64_t total = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
    const std::uint64_t before = std::accumulate(counts.begin(), counts.begin() + rig.rank, std::uint64_t{0});
    const Numbers all_v = given(root, total);
    const Buffer<Device> send_v = is_root ? rig.put(all_v) : Buffer<Device>();
    const Buffer<Device> recv_v = rig.room(counts[me]);
    ASSERT_TRUE(rig.group.scatter_v(send_v, is_root ? counts : std::vector<std::uint64_t>(), recv_v, counts[me], kType, root));
    EXPECT_EQ(rig.get(recv_v), part(all_v, before, counts[me]));
  });
}

TEST_P(DeviceGroupTest, AllToAll) {
  for_counts([](Rig& rig, std::uint64_t count) {
    const auto n = static_cast<std::uint64_t>(rig.size);
    const auto me = static_cast<std::uint64_t>(rig.rank);
    const Buffer<Device> send = rig.put(given(rig.rank, count * n));
    const Buffer<Device> recv = rig.room(count * n);
    ASSERT_TRUE(rig.group.all_to_all(send, recv, count, kType));
    Numbers expected;
    for (Rank r = 0; r < rig.size; ++r) append(expected, part(given(r, count * n), me * count, count));
    EXPECT_EQ(rig.get(recv), expected);

    // Rank r sends count * ((r + to) % 3) elements to each.
    const auto between = [count](Rank from, Rank to) { return count * static_cast<std::uint64_t>((from + to) % 3); };
    std::vector<std::uint64_t> sends(n);
    std::vector<std::uint64_t> recvs(n);
    Numbers expected_v;
    for (Rank r = 0; r < rig.size; ++r) {
      sends[static_cast<std::size_t>(r)] = between(rig.rank, r);
      recvs[static_cast<std::size_t>(r)] = between(r, rig.rank);
      std::uint64_t theirs = 0;
      std::uint64_t before = 0;
      for (Rank to = 0; to < rig.size; ++to) {
        if (to < rig.rank) before += between(r, to);
        theirs += between(r, to);
      }
      append(expected_v, part(given(r, theirs), before, between(r, rig.rank)));
    }
    const Buffer<Device> send_v = rig.put(given(rig.rank, std::accumulate(sends.begin(), sends.end(), std::uint64_t{0})));
    const Buffer<Device> recv_v = rig.room(expected_v.size());
    ASSERT_TRUE(rig.group.all_to_all_v(send_v, sends, recv_v, recvs, kType));
    EXPECT_EQ(rig.get(recv_v), expected_v);
  });
}

TEST_P(DeviceGroupTest, BucketsOfManyBuffers) {
  on_all_ranks(nodes, [](const Group& world) {
    Rig rig(world);
    ASSERT_TRUE(rig.group.all_reduce_bucketed({}, kType, ReduceOp::kSum));
    std::vector<Buffer<Device>> buffers;
    for (const std::uint64_t count : {3u, 0u, 1u, 17u, 0u, 2u}) buffers.push_back(rig.put(given(rig.rank, count)));
    ASSERT_TRUE(rig.group.all_reduce_bucketed(buffers, kType, ReduceOp::kSum));
    for (const Buffer<Device>& buffer : buffers) EXPECT_EQ(rig.get(buffer), sum_of(rig.size, buffer.bytes() / 8));
  });
}

TEST_P(DeviceGroupTest, MessagesAroundARing) {
  if (GetParam() == 1) GTEST_SKIP() << "needs another rank";
  on_all_ranks(nodes, [](const Group& world) {
    Rig rig(world);
    const Buffer<Device> mine = rig.put(given(rig.rank, 20000));
    const Buffer<Device> theirs = rig.room(20000);
    const Rank previous = (rig.rank + rig.size - 1) % rig.size;
    if (rig.rank % 2 == 0) {
      ASSERT_TRUE(rig.group.send(mine, (rig.rank + 1) % rig.size, 5));
    }
    EXPECT_EQ(rig.group.recv(theirs, previous, 5).value().bytes, 160000u);
    if (rig.rank % 2 == 1) {
      ASSERT_TRUE(rig.group.send(mine, (rig.rank + 1) % rig.size, 5));
    }
    EXPECT_EQ(rig.get(theirs), given(previous, 20000));
  });
}

TEST_P(DeviceGroupTest, MemoryThatTheHostReachesGoesStraightThrough) {
  on_all_ranks(nodes, [](const Group& world) {
    auto cpu = std::make_shared<CpuAdapter>();
    const DeviceGroup group(world, kSmallPieces);
    Numbers numbers = given(world.rank(), 100);
    ASSERT_TRUE(group.all_reduce(Buffer<Device>(cpu, CpuAdapter::pointer(numbers.data()), 800), 100, kType, ReduceOp::kSum));
    EXPECT_EQ(numbers, sum_of(world.size(), 100));
    EXPECT_EQ(world.pool()->counters().taken, 0u);
  });
}

TEST_P(DeviceGroupTest, PiecesOverlapAndSlotsAreUsedAgain) {
  on_all_ranks(nodes, [](const Group& world) {
    Rig rig(world);
    const Buffer<Device> buffer = rig.put(given(rig.rank, 1000));
    ASSERT_TRUE(rig.group.all_reduce(buffer, 1000, kType, ReduceOp::kSum));
    EXPECT_EQ(rig.get(buffer), sum_of(rig.size, 1000));
    EXPECT_EQ(rig.adapter->posted(), 2 * 1000u / 5);
    EXPECT_GT(rig.adapter->most_pending(), 1u);
    EXPECT_LE(rig.adapter->most_pending(), 3u);
    EXPECT_EQ(world.pool()->counters().taken, 3u);
    EXPECT_EQ(world.pool()->counters().in_use, 0u);
    EXPECT_EQ(rig.adapter->registrations_ever(), 3u);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, DeviceGroupTest, testing::Values(1, 2, 3, 5),
                         [](const auto& ranks) { return std::to_string(ranks.param); });

}  // namespace
}  // namespace nexar
