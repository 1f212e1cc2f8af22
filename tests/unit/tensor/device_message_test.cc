// Messages from and to devices that nobody waits for yet.
#include <chrono>
#include <cstdint>
#include <latch>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "nexar/node.h"
#include "tensor/ranks.h"
#include "tensor/rig.h"

namespace nexar {
namespace {

using namespace std::chrono_literals;
using test::given;
using test::on_all_ranks;
using test::Rig;
using test::sum_of;

constexpr DataType kMessageType = DataType::kI64;

class DeviceMessages : public testing::TestWithParam<Transport> {
 protected:
  std::vector<Node> world(int ranks, std::uint64_t budget = 64 << 20) {
    LocalOptions options;
    options.config.transport = GetParam();
    options.config.memory_budget = budget;
    return Node::local(ranks, options).value();
  }
};

TEST_P(DeviceMessages, GoAroundARingManyAtOnceInAGroupWhoseRanksAreNotTheWorlds) {
  const std::vector<Node> nodes = world(3);
  on_all_ranks(nodes, [](const Group& all) {
    const Group group = *all.split(0, -all.rank()).value();
    Rig rig(group);
    const Rank next = (rig.rank + 1) % rig.size;
    const Rank previous = (rig.rank + rig.size - 1) % rig.size;
    const std::vector<std::uint64_t> counts = {0, 1, 7, 20000, 3};
    std::vector<Buffer<Device>> rooms;
    std::vector<Operation> receives, sends;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      rooms.push_back(rig.room(counts[i] + 2));
      receives.push_back(rig.group.start_recv(rooms[i], i % 2 == 0 ? previous : kAnySource, static_cast<Tag>(i)));
    }
    for (std::size_t i = 0; i < counts.size(); ++i)
      sends.push_back(rig.group.start_send(rig.put(given(rig.rank, counts[i])), next, static_cast<Tag>(i)));
    for (std::size_t i = counts.size(); i-- > 0;) {
      EXPECT_EQ(receives[i].wait().value(), (Status{counts[i] * 8, previous, static_cast<Tag>(i)}));
      EXPECT_EQ(sends[i].wait().value(), (Status{counts[i] * 8, next, static_cast<Tag>(i)}));
      EXPECT_EQ(test::part(rig.get(rooms[i]), 0, counts[i]), given(previous, counts[i]));
    }
    EXPECT_EQ(rig.adapter->pending(), 0u);
    EXPECT_EQ(group.pool()->counters().in_use, 0u);
    EXPECT_TRUE(group.barrier());
  });
}

TEST_P(DeviceMessages, WaitForNoCollective) {
  const std::vector<Node> nodes = world(2);
  on_all_ranks(nodes, [](const Group& group) {
    Rig held(group), rig(group);
    if (held.rank == 1) held.adapter->hold();
    const Buffer<Device> buffer = held.put(given(held.rank, 53));
    Operation collective = held.group.start_all_reduce(buffer, 53, kMessageType, ReduceOp::kSum);
    const Buffer<Device> room = rig.room(30);
    Operation receive = rig.group.start_recv(room, 1 - rig.rank, 4);
    ASSERT_TRUE(rig.group.start_send(rig.put(given(rig.rank, 30)), 1 - rig.rank, 4).wait());
    ASSERT_TRUE(receive.wait());
    EXPECT_EQ(rig.get(room), given(1 - rig.rank, 30));
    if (held.rank == 1) {
      EXPECT_FALSE(collective.done());
      held.adapter->release();
    }
    ASSERT_TRUE(collective.wait());
    EXPECT_EQ(held.get(buffer), sum_of(2, 53));
  });
}

TEST_P(DeviceMessages, AReceiveThatIsGivenUpLeavesTheMessageToTheNext) {
  const std::vector<Node> nodes = world(2);
  std::latch given_up(1);
  on_all_ranks(nodes, [&](const Group& group) {
    Rig rig(group);
    if (rig.rank == 1) {
      given_up.wait();
      ASSERT_TRUE(rig.group.send(rig.put(given(1, 9)), 0, 2));
      return;
    }
    const Buffer<Device> room = rig.room(9);
    const Result<Status> late = rig.group.start_recv(room, 1, 2).wait(10ms);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code(), ErrorCode::kTimeout) << late.error().to_string();
    Operation cancelled = rig.group.start_recv(room, 1, 2);
    cancelled.cancel();
    EXPECT_EQ(cancelled.wait().error().code(), ErrorCode::kCancelled);
    { const Operation dropped = rig.group.start_recv(room, 1, 2); }
    EXPECT_EQ(group.pool()->counters().in_use, 0u);
    given_up.count_down();
    ASSERT_TRUE(rig.group.recv(room, 1, 2));
    EXPECT_EQ(rig.get(room), given(1, 9));
  });
}

TEST_P(DeviceMessages, AStepThatFailsEndsTheMessageWhereItIs) {
  const std::vector<Node> nodes = world(2);
  on_all_ranks(nodes, [](const Group& group) {
    Rig rig(group);
    const Buffer<Device> buffer = rig.rank == 0 ? rig.put(given(0, 9)) : rig.room(9);
    const auto pass = [&] { return rig.rank == 0 ? rig.group.start_send(buffer, 1, 2).wait() : rig.group.start_recv(buffer, 0, 2).wait(); };
    rig.adapter->fail_after(0);
    const Result<Status> failed = pass();  // rank 1 gets what the second send brings: of the first nothing has come
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code(), ErrorCode::kDevice) << failed.error().to_string();
    if (rig.rank == 0) {
      ASSERT_TRUE(pass());
    }
    ASSERT_TRUE(pass());
    EXPECT_EQ(rig.get(buffer), given(0, 9));
    EXPECT_EQ(group.pool()->counters().in_use, 0u);
  });
}

TEST_P(DeviceMessages, WhatIsWrongWithTheArgumentsIsSaidByTheOperation) {
  const std::vector<Node> nodes = world(2, 1 << 20);
  on_all_ranks(nodes, [](const Group& group) {
    Rig rig(group);
    const auto code = [](Operation operation) { return operation.wait().error().code(); };
    const Buffer<Device> null(rig.adapter, DevicePointer(), 8);
    EXPECT_EQ(code(rig.group.start_send(null, 0, 1)), ErrorCode::kInvalidArgument);
    EXPECT_EQ(code(rig.group.start_recv(null, 0, 1)), ErrorCode::kInvalidArgument);
    EXPECT_EQ(code(rig.group.start_send(rig.room(1), 2, 1)), ErrorCode::kInvalidArgument);
    EXPECT_EQ(code(rig.group.start_recv(rig.room(1), 2, 1)), ErrorCode::kInvalidArgument);
    EXPECT_EQ(code(rig.group.start_recv(rig.room(1 << 18), 0, 1)), ErrorCode::kOverloaded);
    Operation receive = rig.group.start_recv(rig.room(2), 1 - rig.rank, 7);
    Operation send = rig.group.start_send(rig.put(given(rig.rank, 3)), 1 - rig.rank, 7);
    EXPECT_EQ(code(std::move(receive)), ErrorCode::kMismatch);
    EXPECT_TRUE(send.wait());
    EXPECT_EQ(group.pool()->counters().in_use, 0u);
  });
}

TEST_P(DeviceMessages, ANodeThatClosesEndsThem) {
  std::vector<Node> nodes = world(2);
  Rig rig(nodes[0].world());
  rig.adapter->hold();
  Operation send = rig.group.start_send(rig.put(given(0, 53)), 1, 3);
  Operation receive = rig.group.start_recv(rig.room(53), 1, 3);
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
  EXPECT_FALSE(send.wait());
  EXPECT_FALSE(receive.wait());
  EXPECT_EQ(rig.group.start_send(rig.put(given(0, 5)), 1, 3).wait().error().code(), ErrorCode::kCancelled);
}

INSTANTIATE_TEST_SUITE_P(Over, DeviceMessages, testing::Values(Transport::kAuto, Transport::kNet),
                         [](const auto& over) { return over.param == Transport::kNet ? "net" : "memory"; });

}  // namespace
}  // namespace nexar
