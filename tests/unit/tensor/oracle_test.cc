// Buckets, compressed gradients and devices on any number of ranks, by memory and by messages, many calls at once.
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "nexar/compressor.h"
#include "nexar/gradient_bucketer.h"
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

constexpr DataType kType = DataType::kI64;

// Operations and what they should leave in a buffer.
class Started {
 public:
  explicit Started(Rig& rig) : rig_(rig) {}

  void add(Operation operation, const Buffer<Device>& buffer, Numbers expected) {
    operations_.push_back({std::move(operation), buffer, std::move(expected)});
  }

  // From the last to the first, which is not the order in which they end.
  void expect_all(const std::string& when) {
    for (std::size_t i = operations_.size(); i-- > 0;) {
      const Result<Status> ended = operations_[i].operation.wait();
      ASSERT_TRUE(ended) << when << ", call " << i << ": " << ended.error().to_string();
    }
    for (std::size_t i = 0; i < operations_.size(); ++i)
      EXPECT_EQ(rig_.get(operations_[i].buffer), operations_[i].expected) << when << ", call " << i;
    operations_.clear();
  }

 private:
  struct One {
    Operation operation;
    Buffer<Device> buffer;
    Numbers expected;
  };
  Rig& rig_;
  std::vector<One> operations_;
};

std::uint64_t uneven(std::uint64_t count, Rank rank) { return count * static_cast<std::uint64_t>(rank % 3); }

struct Counts {
  Counts(std::uint64_t count, int ranks, Rank rank) {
    for (Rank r = 0; r < ranks; ++r) all.push_back(uneven(count, r));
    total = std::accumulate(all.begin(), all.end(), std::uint64_t{0});
    before = std::accumulate(all.begin(), all.begin() + rank, std::uint64_t{0});
    mine = all[static_cast<std::size_t>(rank)];
  }
  std::vector<std::uint64_t> all;
  std::uint64_t total;
  std::uint64_t before;
  std::uint64_t mine;
};

void start_reductions(Rig& rig, std::uint64_t count, Started& started) {
  const auto n = static_cast<std::uint64_t>(rig.size);
  const auto me = static_cast<std::uint64_t>(rig.rank);
  const Rank root = rig.size / 2;
  const Buffer<Device> send = rig.put(given(rig.rank, count));
  const auto into = [&](std::uint64_t elements) { return rig.room(elements); };

  const Buffer<Device> in_place = rig.put(given(rig.rank, count));
  started.add(rig.group.start_all_reduce(in_place, count, kType, ReduceOp::kSum), in_place, sum_of(rig.size, count));
  Buffer<Device> recv = into(count);
  started.add(rig.group.start_all_reduce(send, recv, count, kType, ReduceOp::kSum), recv, sum_of(rig.size, count));
  recv = rig.put(given(rig.rank, count));
  const MiddleFunction twice = [](void* elements, std::uint64_t, std::uint64_t several) {
    for (std::uint64_t i = 0; i < several; ++i) static_cast<std::int64_t*>(elements)[i] *= 2;
  };
  Numbers doubled = sum_of(rig.size, count);
  for (std::int64_t& number : doubled) number *= 2;
  started.add(rig.group.start_all_reduce_rs_ag(recv, count, kType, ReduceOp::kSum, twice), recv, doubled);
  recv = rig.rank == root ? into(count) : Buffer<Device>();
  started.add(rig.group.start_reduce(send, recv, count, kType, ReduceOp::kSum, root), recv.adapter() ? recv : rig.room(0),
              rig.rank == root ? sum_of(rig.size, count) : Numbers());
  recv = into(count);
  started.add(rig.group.start_reduce_scatter(rig.put(given(rig.rank, count * n)), recv, count, kType, ReduceOp::kSum), recv,
              part(sum_of(rig.size, count * n), me * count, count));
  const Counts counts(count, rig.size, rig.rank);
  recv = into(counts.mine);
  started.add(rig.group.start_reduce_scatter_v(rig.put(given(rig.rank, counts.total)), recv, counts.all, kType, ReduceOp::kSum), recv,
              part(sum_of(rig.size, counts.total), counts.before, counts.mine));
  recv = into(count);
  started.add(rig.group.start_scan(send, recv, count, kType, ReduceOp::kSum), recv, sum_of(rig.rank + 1, count));
  recv = into(count);
  started.add(rig.group.start_exclusive_scan(send, recv, count, kType, ReduceOp::kSum), recv, sum_of(rig.rank, count));
}

void start_moves(Rig& rig, std::uint64_t count, Started& started) {
  const auto n = static_cast<std::uint64_t>(rig.size);
  const auto me = static_cast<std::uint64_t>(rig.rank);
  const Rank root = rig.size - 1;
  const bool is_root = rig.rank == root;
  const Counts counts(count, rig.size, rig.rank);
  const Buffer<Device> send = rig.put(given(rig.rank, count));
  const Buffer<Device> nothing = rig.room(0);
  Numbers gathered;
  Numbers gathered_v;
  Numbers exchanged;
  for (Rank r = 0; r < rig.size; ++r) {
    append(gathered, given(r, count));
    append(gathered_v, given(r, uneven(count, r)));
    append(exchanged, part(given(r, count * n), me * count, count));
  }
  Buffer<Device> recv = rig.put(given(rig.rank, count));
  started.add(rig.group.start_broadcast(recv, count, kType, root), recv, given(root, count));
  recv = rig.room(count * n);
  started.add(rig.group.start_all_gather(send, recv, count, kType), recv, gathered);
  recv = rig.room(counts.total);
  started.add(rig.group.start_all_gather_v(rig.put(given(rig.rank, counts.mine)), recv, counts.all, kType), recv, gathered_v);
  recv = is_root ? rig.room(count * n) : nothing;
  started.add(rig.group.start_gather(send, recv, count, kType, root), recv, is_root ? gathered : Numbers());
  recv = is_root ? rig.room(counts.total) : nothing;
  started.add(rig.group.start_gather_v(rig.put(given(rig.rank, counts.mine)), counts.mine, recv,
                                       is_root ? counts.all : std::vector<std::uint64_t>(), kType, root),
              recv, is_root ? gathered_v : Numbers());
  recv = rig.room(count);
  started.add(rig.group.start_scatter(is_root ? rig.put(given(root, count * n)) : nothing, recv, count, kType, root), recv,
              part(given(root, count * n), me * count, count));
  recv = rig.room(counts.mine);
  started.add(rig.group.start_scatter_v(is_root ? rig.put(given(root, counts.total)) : nothing,
                                        is_root ? counts.all : std::vector<std::uint64_t>(), recv, counts.mine, kType, root),
              recv, part(given(root, counts.total), counts.before, counts.mine));
  recv = rig.room(count * n);
  started.add(rig.group.start_all_to_all(rig.put(given(rig.rank, count * n)), recv, count, kType), recv, exchanged);
  // Everybody sends count * (to % 3) elements to rank `to`.
  Numbers exchanged_v;
  for (Rank r = 0; r < rig.size; ++r) append(exchanged_v, part(given(r, counts.total), counts.before, counts.mine));
  recv = rig.room(exchanged_v.size());
  started.add(rig.group.start_all_to_all_v(rig.put(given(rig.rank, counts.total)), counts.all, recv,
                                           std::vector<std::uint64_t>(n, counts.mine), kType),
              recv, exchanged_v);
}

void call_everything_at_once(const Group& world) {
  for (const std::uint64_t count : {0, 1, 13}) {
    Rig rig(world);
    Started started(rig);
    start_reductions(rig, count, started);
    start_moves(rig, count, started);
    Numbers host = given(rig.rank, 7);
    ASSERT_TRUE(world.all_reduce(host.data(), host.data(), 7, kType, ReduceOp::kSum));  // which begins after all of them
    EXPECT_EQ(host, sum_of(rig.size, 7));
    started.expect_all(std::to_string(count) + " elements");
    EXPECT_EQ(rig.adapter->pending(), 0u);
    EXPECT_EQ(world.pool()->counters().in_use, 0u);
  }
}

void fill_buckets_of_either_memory(const Group& world) {
  Rig rig(world);
  const std::vector<std::uint64_t> sizes = {3, 0, 60, 1, 17, 200, 0, 2, 5, 31};
  GradientBucketer bucketer(rig.group, kType, ReduceOp::kSum, {.bucket_bytes = 400, .in_flight_max = 3});
  for (int step = 0; step < 2; ++step) {
    std::vector<Buffer<Device>> buffers;
    std::vector<Numbers> host;
    for (const std::uint64_t count : sizes) {
      buffers.push_back(rig.put(given(rig.rank, count)));
      host.push_back(given(rig.rank, count));
    }
    for (const Buffer<Device>& buffer : buffers) ASSERT_TRUE(bucketer.add(buffer));
    for (Numbers& numbers : host) ASSERT_TRUE(bucketer.add(numbers.data(), numbers.size()));  // the kind changes once
    EXPECT_LE(bucketer.in_flight(), 3u);
    ASSERT_TRUE(bucketer.finish());
    EXPECT_EQ(bucketer.in_flight(), 0u);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_EQ(rig.get(buffers[i]), sum_of(rig.size, sizes[i]));
      EXPECT_EQ(host[i], sum_of(rig.size, sizes[i]));
    }
  }
  EXPECT_EQ(world.pool()->counters().in_use, 0u);
}

void compress_among_other_calls(const Group& world) {
  Rig rig(world);
  const auto n = static_cast<float>(world.size());
  std::vector<Operation> operations;
  std::vector<Buffer<Device>> buffers;
  std::vector<std::vector<float>> tensors;
  for (const auto& compressor : {Compressor::none(), Compressor::top_k(1).value(), Compressor::random_k(0.3).value(), Compressor::sign()}) {
    buffers.push_back(rig.put(given(rig.rank, 30)));
    operations.push_back(rig.group.start_all_reduce(buffers.back(), 30, kType, ReduceOp::kSum));
    tensors.emplace_back(200, 3.0f);
    operations.push_back(
        world.start_all_reduce_compressed(tensors.back().data(), 200, DataType::kF32, ReduceOp::kSum, compressor, nullptr));
  }
  for (Operation& operation : operations) {
    const Result<Status> ended = operation.wait();
    ASSERT_TRUE(ended) << ended.error().to_string();
  }
  for (const Buffer<Device>& buffer : buffers) EXPECT_EQ(rig.get(buffer), sum_of(rig.size, 30));
  for (const std::vector<float>& tensor : tensors)
    for (const float number : tensor) ASSERT_TRUE(number == 3 * n || number == 0) << number;
}

using Where = std::tuple<int, Transport>;

class TensorOracle : public testing::TestWithParam<Where> {
 protected:
  void SetUp() override {
    LocalOptions options;
    options.config.transport = std::get<Transport>(GetParam());
    nodes = Node::local(std::get<int>(GetParam()), options).value();
  }
  std::vector<Node> nodes;
};

TEST_P(TensorOracle, DevicesBucketsAndCompressedGradients) {
  on_all_ranks(nodes, [](const Group& world) {
    const bool by_messages = world.config().transport == Transport::kNet;
    EXPECT_TRUE(world.size() == 1 || world.shares_memory() != by_messages);
    call_everything_at_once(world);
    fill_buckets_of_either_memory(world);
    compress_among_other_calls(world);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, TensorOracle, testing::Combine(testing::Range(1, 10), testing::Values(Transport::kAuto, Transport::kNet)),
                         [](const auto& where) {
                           const bool net = std::get<Transport>(where.param) == Transport::kNet;
                           return std::to_string(std::get<int>(where.param)) + (net ? "OverNet" : "OverMemory");
                         });

TEST(DeviceBuckets, AnErrorOfOneBucketIsToldAndTheNextStepIsAsNew) {
  const std::vector<Node> nodes = Node::local(2).value();
  on_all_ranks(nodes, [](const Group& world) {
    Rig rig(world, kSmallPieces);
    GradientBucketer bucketer(rig.group, kType, ReduceOp::kSum, {.bucket_bytes = 80});
    if (rig.rank == 1) rig.adapter->fail_after(3);
    bool failed = false;
    for (int i = 0; i < 6; ++i) failed = !bucketer.add(rig.put(given(rig.rank, 20))) || failed;
    const Result<void> finished = bucketer.finish();
    ASSERT_FALSE(finished);
    EXPECT_EQ(finished.error().code(), rig.rank == 1 ? ErrorCode::kDevice : ErrorCode::kCancelled) << finished.error().to_string();
    const Buffer<Device> again = rig.put(given(rig.rank, 25));
    ASSERT_TRUE(bucketer.add(again));
    ASSERT_TRUE(bucketer.finish());
    EXPECT_EQ(rig.get(again), sum_of(rig.size, 25));
  });
}

TEST(DeviceBuckets, BuffersThatCannotBeOneBucketAreRefusedEverywhere) {
  const std::vector<Node> nodes = Node::local(2).value();
  on_all_ranks(nodes, [](const Group& world) {
    Rig rig(world);
    Rig other(world);
    const auto expect_refused = [&](const Buffer<Device>& wrong, std::string_view why) {
      GradientBucketer bucketer(rig.group, kType, ReduceOp::kSum);
      ASSERT_TRUE(bucketer.add(rig.put(given(rig.rank, 20))));
      ASSERT_TRUE(bucketer.add(rig.rank == 1 ? wrong : rig.put(given(rig.rank, wrong.bytes() / 8))));
      const Result<void> finished = bucketer.finish();
      ASSERT_FALSE(finished);
      EXPECT_EQ(finished.error().code(), rig.rank == 1 ? ErrorCode::kInvalidArgument : ErrorCode::kCancelled);
      EXPECT_NE(finished.error().to_string().find(why), std::string::npos) << finished.error().to_string();
      ASSERT_TRUE(world.barrier());
    };
    expect_refused(other.put(given(rig.rank, 3)), "of another adapter or stream");
    expect_refused(Buffer<Device>(rig.adapter, DevicePointer(), 24), "null and 24 bytes long");
    expect_refused(Buffer<Device>(rig.adapter, rig.room(4).at(), 28), "no whole number of elements");
  });
}

TEST(DeviceBuckets, ABucketerThatIsDroppedGivesTheMemoryBack) {
  const std::vector<Node> nodes = Node::local(2).value();
  Rig rig(nodes[0].world());
  {
    GradientBucketer bucketer(rig.group, kType, ReduceOp::kSum, {.bucket_bytes = 100});
    ASSERT_TRUE(bucketer.add(rig.put(given(0, 20))));
    EXPECT_EQ(bucketer.in_flight(), 1u);
  }
  EXPECT_EQ(rig.adapter->pending(), 0u);
  EXPECT_EQ(nodes[0].world().pool()->counters().in_use, 0u);
}

}  // namespace
}  // namespace nexar
