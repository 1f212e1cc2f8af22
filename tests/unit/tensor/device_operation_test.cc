// Collectives over devices that nobody waits for yet: how they end, and what becomes of calls that come after them.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <latch>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>

#include <gtest/gtest.h>

#include "nexar/compressor.h"
#include "nexar/node.h"
#include "tensor/ranks.h"
#include "tensor/rig.h"

namespace nexar {
namespace {

using namespace std::chrono_literals;
using test::given;
using test::kSmallPieces;
using test::Numbers;
using test::on_all_ranks;
using test::Rig;
using test::sum_of;

constexpr DataType kType = DataType::kI64;

bool says(const Error& error, std::string_view what) { return error.to_string().find(what) != std::string::npos; }

// That everybody is at the same place in the order of calls.
void expect_usable(Rig& rig) {
  const Buffer<Device> buffer = rig.put(given(rig.rank, 40));
  const Result<void> done = rig.group.all_reduce(buffer, 40, kType, ReduceOp::kSum);
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(rig.get(buffer), sum_of(rig.size, 40));
  EXPECT_EQ(rig.adapter->pending(), 0u);
  EXPECT_EQ(rig.group.group().pool()->counters().in_use, 0u);
}

// Over memory that ranks share, and over messages.
class DeviceOperation : public testing::TestWithParam<Transport> {
 protected:
  std::vector<Node> world(int ranks) {
    LocalOptions options;
    options.config.transport = GetParam();
    return Node::local(ranks, options).value();
  }
};

TEST_P(DeviceOperation, GoesOnWhileNobodyWaits) {
  const std::vector<Node> nodes = world(3);
  on_all_ranks(nodes, [](const Group& group) {
    Rig rig(group);
    const Buffer<Device> buffer = rig.put(given(rig.rank, 53));
    Operation operation = rig.group.start_all_reduce(buffer, 53, kType, ReduceOp::kSum);
    std::atomic<bool> told = false;
    operation.on_done([&](const Result<Status>& result) { told = result.has_value(); });
    pollfd ready{operation.descriptor().value(), POLLIN, 0};
    ASSERT_EQ(poll(&ready, 1, 20000), 1);
    ASSERT_TRUE(operation.wait(0ms));
    EXPECT_TRUE(told);
    EXPECT_EQ(rig.get(buffer), sum_of(rig.size, 53));
    EXPECT_EQ(group.pool()->counters().in_use, 0u);
  });
}

TEST_P(DeviceOperation, CallsThatComeLaterBeginWhenAllItsPiecesHave) {
  const std::vector<Node> nodes = world(3);
  on_all_ranks(nodes, [](const Group& group) {
    Rig rig(group);
    if (rig.rank == 1) rig.adapter->hold();
    const Buffer<Device> first = rig.put(given(rig.rank, 53));
    const Buffer<Device> second = rig.put(given(rig.rank, 30));
    Numbers host = given(rig.rank, 20);
    Operation one = rig.group.start_all_reduce(first, 53, kType, ReduceOp::kSum);
    Operation plain = group.start_all_reduce(host.data(), host.data(), 20, kType, ReduceOp::kSum);
    Operation two = rig.group.start_all_reduce(second, 30, kType, ReduceOp::kSum);
    if (rig.rank == 1) {
      EXPECT_FALSE(one.done());
      EXPECT_FALSE(plain.done());
      rig.adapter->release();
    }
    ASSERT_TRUE(group.barrier());  // which stands behind them
    ASSERT_TRUE(two.wait());
    ASSERT_TRUE(plain.wait());
    ASSERT_TRUE(one.wait());
    EXPECT_EQ(rig.get(first), sum_of(rig.size, 53));
    EXPECT_EQ(rig.get(second), sum_of(rig.size, 30));
    EXPECT_EQ(host, sum_of(rig.size, 20));
    expect_usable(rig);
  });
}

TEST_P(DeviceOperation, ACallThatIsCancelledWhileItWaitsForItsTurnIsDeclined) {
  const std::vector<Node> nodes = world(2);
  on_all_ranks(nodes, [](const Group& group) {
    Rig rig(group);
    if (rig.rank == 1) rig.adapter->hold();
    const Buffer<Device> first = rig.put(given(rig.rank, 53));
    Numbers host = given(rig.rank, 20);
    Operation one = rig.group.start_all_reduce(first, 53, kType, ReduceOp::kSum);
    Operation plain = group.start_all_reduce(host.data(), host.data(), 20, kType, ReduceOp::kSum);
    Operation behind = rig.group.start_all_reduce(rig.put(given(rig.rank, 30)), 30, kType, ReduceOp::kSum);
    if (rig.rank == 1) {
      const Result<Status> ended = plain.wait(10ms);
      ASSERT_FALSE(ended);
      EXPECT_EQ(ended.error().code(), ErrorCode::kTimeout) << ended.error().to_string();
      std::thread device([&] {
        while (rig.adapter->pending() == 0) std::this_thread::yield();
        rig.adapter->release();
      });
      behind.cancel();  // its steps end first
      device.join();
      EXPECT_EQ(behind.wait().error().code(), ErrorCode::kCancelled);
    }
    ASSERT_TRUE(one.wait());
    EXPECT_EQ(rig.get(first), sum_of(rig.size, 53));
    if (rig.rank == 0) {
      const Result<Status> plain_ended = plain.wait();
      ASSERT_FALSE(plain_ended);
      EXPECT_EQ(plain_ended.error().code(), ErrorCode::kTimeout) << plain_ended.error().to_string();
      ASSERT_EQ(plain_ended.error().ranks().size(), 1u);
      EXPECT_EQ(plain_ended.error().ranks()[0], 1);
      const Result<Status> ended = behind.wait();
      ASSERT_FALSE(ended);
      EXPECT_EQ(ended.error().code(), ErrorCode::kCancelled) << ended.error().to_string();
    }
    expect_usable(rig);
  });
}

TEST_P(DeviceOperation, ThatIsDroppedEndsWithTheDevicesStepsAndIsCancelledElsewhere) {
  const std::vector<Node> nodes = world(3);
  on_all_ranks(nodes, [](const Group& group) {
    Rig rig(group);
    const Buffer<Device> buffer = rig.put(given(rig.rank, 200));
    {
      Operation operation = rig.group.start_all_reduce(buffer, 200, kType, ReduceOp::kSum);
      if (rig.rank != 1) {
        const Result<Status> ended = operation.wait();
        if (!ended) {  // it may have been quicker
          EXPECT_EQ(ended.error().code(), ErrorCode::kCancelled) << ended.error().to_string();
        }
      }
    }
    EXPECT_EQ(rig.adapter->pending(), 0u);
    EXPECT_EQ(group.pool()->counters().in_use, 0u);
    expect_usable(rig);
  });
}

TEST_P(DeviceOperation, AWaitThatIsTooLongIsNamedEverywhere) {
  const std::vector<Node> nodes = world(2);
  std::latch timed_out(1);
  on_all_ranks(nodes, [&](const Group& group) {
    Rig rig(group);
    if (rig.rank == 1) timed_out.wait();
    Operation operation = rig.group.start_all_reduce(rig.put(given(rig.rank, 53)), 53, kType, ReduceOp::kSum);
    const Result<Status> ended = rig.rank == 0 ? operation.wait(30ms) : operation.wait();
    if (rig.rank == 0) timed_out.count_down();
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code(), ErrorCode::kTimeout) << ended.error().to_string();
    EXPECT_TRUE(says(ended.error(), "rank 0 waited for all_reduce no longer than 30ms")) << ended.error().to_string();
    expect_usable(rig);
  });
}

TEST_P(DeviceOperation, AStepThatFailsEndsItsOwnCallOnly) {
  const std::vector<Node> nodes = world(3);
  for (const std::size_t failing : {0u, 5u, 20u, 29u}) {
    on_all_ranks(nodes, [&](const Group& group) {
      Rig rig(group);
      const Buffer<Device> first = rig.put(given(rig.rank, 100));
      const Buffer<Device> second = rig.put(given(rig.rank, 100));
      if (rig.rank == 1) rig.adapter->fail_after(failing);
      Operation one = rig.group.start_all_reduce(first, 100, kType, ReduceOp::kSum);
      const Result<Status> ended = one.wait();
      Operation two = rig.group.start_all_reduce(second, 100, kType, ReduceOp::kSum);
      ASSERT_FALSE(ended) << failing;
      EXPECT_EQ(ended.error().code(), rig.rank == 1 ? ErrorCode::kDevice : ErrorCode::kCancelled) << ended.error().to_string();
      EXPECT_TRUE(says(ended.error(), "the fake device failed")) << ended.error().to_string();
      ASSERT_TRUE(two.wait());
      EXPECT_EQ(rig.get(second), sum_of(rig.size, 100));
      expect_usable(rig);
    });
  }
}

// Whichever of several calls it hits, with their steps in any order: all ranks go on.
TEST_P(DeviceOperation, AStepThatFailsAmongSeveralCallsLeavesTheGroupUsable) {
  const std::vector<Node> nodes = world(2);
  for (const std::size_t failing : {1u, 8u, 21u}) {
    on_all_ranks(nodes, [&](const Group& group) {
      Rig rig(group);
      if (rig.rank == 1) rig.adapter->fail_after(failing);
      std::vector<Buffer<Device>> buffers;
      std::vector<Operation> operations;
      for (int i = 0; i < 4; ++i) {
        buffers.push_back(rig.put(given(rig.rank, 30)));
        operations.push_back(rig.group.start_all_reduce(buffers.back(), 30, kType, ReduceOp::kSum));
      }
      int failed = 0;
      for (std::size_t i = 0; i < operations.size(); ++i) {
        if (operations[i].wait())
          EXPECT_EQ(rig.get(buffers[i]), sum_of(rig.size, 30));
        else
          ++failed;
      }
      EXPECT_LE(failed, 1);
      if (rig.rank == 1) {
        EXPECT_EQ(failed, 1);
      }
      expect_usable(rig);
    });
  }
}

TEST_P(DeviceOperation, CountsThatAreBeingAgreedOnMayBeCancelledAtOnce) {
  const std::vector<Node> nodes = world(3);
  std::latch cancelled(1);
  on_all_ranks(nodes, [&](const Group& group) {
    Rig rig(group);
    const Buffer<Device> send = rig.put(given(rig.rank, 60));
    const Buffer<Device> recv = rig.room(60);
    const std::vector<std::uint64_t> counts(3, 20);
    if (rig.rank != 0) cancelled.wait();
    Operation operation = rig.group.start_all_to_all_v(send, counts, recv, counts, kType);
    if (rig.rank == 0) {
      operation.cancel(Error(ErrorCode::kCancelled, "changed its mind"));
      EXPECT_EQ(group.pool()->counters().in_use, 0u);
      cancelled.count_down();
    }
    const Result<Status> ended = operation.wait();
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code(), ErrorCode::kCancelled) << ended.error().to_string();
    EXPECT_TRUE(says(ended.error(), "changed its mind")) << ended.error().to_string();
    expect_usable(rig);
  });
}

TEST_P(DeviceOperation, ADeadlineIsOfTheWholeCall) {
  const std::vector<Node> nodes = world(2);
  std::latch late(1);
  on_all_ranks(nodes, [&](const Group& group) {
    Rig rig(group);
    const Buffer<Device> send = rig.put(given(rig.rank, 60));
    const Buffer<Device> recv = rig.room(60);
    const std::vector<std::uint64_t> counts(2, 30);
    if (rig.rank == 1) late.wait();
    const CallOptions options{.deadline = rig.rank == 0 ? 30ms : 20s};
    const Result<void> v = rig.group.all_to_all_v(send, counts, recv, counts, kType, options);
    if (rig.rank == 0) late.count_down();
    ASSERT_FALSE(v);
    EXPECT_EQ(v.error().code(), ErrorCode::kTimeout) << v.error().to_string();
    expect_usable(rig);
    if (rig.rank == 0) rig.adapter->hold();
    Operation plain = rig.group.start_all_reduce(send, 60, kType, ReduceOp::kSum, options);
    if (rig.rank == 0) {
      std::thread device([&] {
        std::this_thread::sleep_for(60ms);  // longer than the deadline
        rig.adapter->release();
      });
      EXPECT_EQ(plain.wait().error().code(), ErrorCode::kTimeout);
      device.join();
    }
    EXPECT_FALSE(plain.wait());
    expect_usable(rig);
  });
}

TEST_P(DeviceOperation, PositionsOfALaterCompressedCallAreTheSameEverywhere) {
  const std::vector<Node> nodes = world(2);
  on_all_ranks(nodes, [](const Group& group) {
    Rig rig(group);
    const Buffer<Device> buffer = rig.put(given(rig.rank, 100));
    if (rig.rank == 1) rig.adapter->hold();
    Operation operation = rig.group.start_all_reduce(buffer, 100, kType, ReduceOp::kSum);
    std::thread device([&] {
      std::this_thread::sleep_for(20ms);  // most likely the call below has come by then
      rig.adapter->release();
    });
    std::vector<float> tensor(1000, 1);
    ASSERT_TRUE(
        group.all_reduce_compressed(tensor.data(), 1000, DataType::kF32, ReduceOp::kSum, Compressor::random_k(0.5).value(), nullptr));
    device.join();
    for (const float number : tensor) ASSERT_TRUE(number == 0 || number == 2) << number;
    ASSERT_TRUE(operation.wait());
    EXPECT_EQ(rig.get(buffer), sum_of(rig.size, 100));
  });
}

TEST_P(DeviceOperation, ANodeThatClosesWaitsForTheDevice) {
  std::vector<Node> nodes = world(2);
  Rig rig(nodes[0].world());
  rig.adapter->hold();
  Operation operation = rig.group.start_all_reduce(rig.put(given(0, 53)), 53, kType, ReduceOp::kSum);
  Operation agreeing = rig.group.start_gather_v(rig.put(given(0, 5)), 5, rig.room(10), std::vector<std::uint64_t>(2, 5), kType, 0);
  while (rig.adapter->pending() == 0) std::this_thread::yield();
  std::thread device([&] {
    std::this_thread::sleep_for(20ms);  // most likely it is closing by then
    rig.adapter->release();
  });
  std::thread other([&] { nodes[1].close().value(); });
  EXPECT_TRUE(nodes[0].close());
  EXPECT_EQ(rig.adapter->pending(), 0u);
  device.join();
  other.join();
  EXPECT_EQ(operation.wait().error().code(), ErrorCode::kCancelled);
  EXPECT_EQ(agreeing.wait().error().code(), ErrorCode::kCancelled);
  EXPECT_EQ(rig.group.start_all_reduce(rig.put(given(0, 5)), 5, kType, ReduceOp::kSum).wait().error().code(), ErrorCode::kCancelled);
}

TEST_P(DeviceOperation, MoreThanThePoolHoldsIsRefusedAndTheOthersGoOn) {
  LocalOptions options;
  options.config.transport = GetParam();
  options.config.memory_budget = 1 << 20;
  const std::vector<Node> nodes = Node::local(2, options).value();
  on_all_ranks(nodes, [&](const Group& group) {
    Rig rig(group, {.piece_bytes = 1 << 19, .slots = 2});
    const Buffer<Device> first = rig.put(given(rig.rank, 200000));
    const Buffer<Device> second = rig.put(given(rig.rank, 10));
    if (rig.rank == 0) rig.adapter->hold();  // so that it still has its slots when the second is called
    Operation one = rig.group.start_all_reduce(first, 200000, kType, ReduceOp::kSum);
    Operation two;
    if (rig.rank == 0) {
      two = rig.group.start_all_reduce(second, 10, kType, ReduceOp::kSum);
      rig.adapter->release();
    }
    ASSERT_TRUE(one.wait());
    if (rig.rank == 1) two = rig.group.start_all_reduce(second, 10, kType, ReduceOp::kSum);
    EXPECT_EQ(rig.get(first), sum_of(rig.size, 200000));
    const Result<Status> refused = two.wait();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), rig.rank == 0 ? ErrorCode::kOverloaded : ErrorCode::kCancelled) << refused.error().to_string();
    expect_usable(rig);
  });
}

INSTANTIATE_TEST_SUITE_P(Over, DeviceOperation, testing::Values(Transport::kAuto, Transport::kNet),
                         [](const auto& over) { return over.param == Transport::kNet ? "net" : "memory"; });

// The adapter of a node, and a call that names another.
TEST(NodeAdapter, IsWhoseMemoryABufferIsThatNamesNone) {
  auto fake = std::make_shared<test::FakeAdapter>();
  LocalOptions options;
  options.adapter = fake;
  const std::vector<Node> nodes = Node::local(2, options).value();
  on_all_ranks(nodes, [&](const Group& group) {
    EXPECT_EQ(group.adapter(), fake);
    const DeviceGroup device(group, kSmallPieces);
    const Buffer<Device> buffer(fake->put(given(group.rank(), 53)), 53 * 8);
    ASSERT_TRUE(device.all_reduce(buffer, 53, kType, ReduceOp::kSum));
    EXPECT_EQ(fake->get<std::int64_t>(buffer.at(), 53), sum_of(2, 53));
    Operation list = device.start_all_reduce_bucketed(std::vector{buffer, buffer}, kType, ReduceOp::kMin);
    ASSERT_TRUE(list.wait());
    if (group.rank() == 0) {
      ASSERT_TRUE(device.send(buffer, 1, 3));
    } else {
      EXPECT_EQ(device.recv(buffer, 0, 3).value().bytes, 53u * 8);
    }

    Rig other(group);  // with an adapter of its own
    const Buffer<Device> there = other.put(given(group.rank(), 53));
    ASSERT_TRUE(device.all_reduce(there, 53, kType, ReduceOp::kSum));
    EXPECT_EQ(other.get(there), sum_of(2, 53));

    Numbers numbers = given(group.rank(), 53);
    const Buffer<Device> host(std::make_shared<CpuAdapter>(), CpuAdapter::pointer(numbers.data()), 53 * 8);
    ASSERT_TRUE(device.all_reduce(host, 53, kType, ReduceOp::kSum));
    EXPECT_EQ(numbers, sum_of(2, 53));
  });
}

TEST(NodeAdapter, IsTheHostsUnlessToldOtherwise) {
  const std::vector<Node> nodes = Node::local(1).value();
  const Group group = nodes[0].world();
  EXPECT_TRUE(group.adapter()->host_addressable());
  Numbers numbers = given(0, 5);
  ASSERT_TRUE(DeviceGroup(group).all_reduce(Buffer<Device>(CpuAdapter::pointer(numbers.data()), 40), 5, kType, ReduceOp::kSum));
  EXPECT_EQ(numbers, given(0, 5));
}

}  // namespace
}  // namespace nexar
