// Devices that fail in the middle of a collective.
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "device/fake_adapter.h"
#include "nexar/device_group.h"
#include "nexar/node.h"
#include "tensor/ranks.h"

namespace nexar {
namespace {

using test::FakeAdapter;
using test::on_all_ranks;

constexpr DeviceGroupOptions kSmallPieces{.piece_bytes = 40, .slots = 3};
constexpr DataType kType = DataType::kI64;

Buffer<Device> of_ones(const std::shared_ptr<FakeAdapter>& adapter, std::uint64_t count) {
  return Buffer<Device>(adapter, adapter->put(std::vector<std::int64_t>(count, 1)), count * 8);
}

// That everybody is at the same place in the order of calls.
void expect_usable(const DeviceGroup& group, const std::shared_ptr<FakeAdapter>& adapter) {
  const Buffer<Device> buffer = of_ones(adapter, 40);
  const Result<void> done = group.all_reduce(buffer, 40, kType, ReduceOp::kSum);
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(adapter->get<std::int64_t>(buffer.at(), 40), std::vector<std::int64_t>(40, group.group().size()));
}

TEST(DeviceFailure, AnyStepThatFailsEndsTheCallEverywhereAndTheGroupGoesOn) {
  const std::vector<Node> nodes = Node::local(3).value();
  // 100 elements are 20 pieces, and each is staged and placed.
  for (const std::size_t failing : {0u, 1u, 2u, 3u, 7u, 19u, 20u, 33u}) {
    on_all_ranks(nodes, [&](const Group& world) {
      auto adapter = std::make_shared<FakeAdapter>(static_cast<std::uint32_t>(world.rank() + 1));
      const DeviceGroup group(world, kSmallPieces);
      const Buffer<Device> buffer = of_ones(adapter, 100);
      if (world.rank() == 1) adapter->fail_after(failing);
      const Result<void> result = group.all_reduce(buffer, 100, kType, ReduceOp::kSum);
      ASSERT_FALSE(result) << failing;
      EXPECT_EQ(result.error().code(), world.rank() == 1 ? ErrorCode::kDevice : ErrorCode::kCancelled) << result.error().to_string();
      EXPECT_NE(result.error().to_string().find("the fake device failed"), std::string::npos) << result.error().to_string();
      EXPECT_NE(result.error().to_string().find(world.rank() == 1 ? "device" : "all_reduce #"), std::string::npos);
      EXPECT_EQ(adapter->pending(), 0u);
      EXPECT_EQ(world.pool()->counters().in_use, 0u);
      expect_usable(group, adapter);
    });
  }
}

TEST(DeviceFailure, TheLastPlaceFailsAloneBecauseTheOthersAreDone) {
  const std::vector<Node> nodes = Node::local(3).value();
  on_all_ranks(nodes, [&](const Group& world) {
    auto adapter = std::make_shared<FakeAdapter>();
    const DeviceGroup group(world, {.piece_bytes = 4000});
    const Buffer<Device> buffer = of_ones(adapter, 100);
    if (world.rank() == 1) adapter->fail_after(1);
    EXPECT_EQ(group.all_reduce(buffer, 100, kType, ReduceOp::kSum).has_value(), world.rank() != 1);
    expect_usable(group, adapter);
  });
}

TEST(DeviceFailure, ABufferThatIsTooShortOnOneRankIsNamedEverywhere) {
  const std::vector<Node> nodes = Node::local(3).value();
  on_all_ranks(nodes, [&](const Group& world) {
    auto adapter = std::make_shared<FakeAdapter>();
    const DeviceGroup group(world, kSmallPieces);
    const Buffer<Device> buffer = of_ones(adapter, world.rank() == 2 ? 99 : 100);
    const Result<void> result = group.all_reduce(buffer, 100, kType, ReduceOp::kSum);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), world.rank() == 2 ? ErrorCode::kInvalidArgument : ErrorCode::kCancelled);
    EXPECT_NE(result.error().to_string().find("a buffer of fake has 792 bytes and needs 800"), std::string::npos)
        << result.error().to_string();
    if (world.rank() == 2) {
      EXPECT_EQ(adapter->posted(), 0u);
    }
    expect_usable(group, adapter);
  });
}

TEST(DeviceFailure, AnAddressThatIsNoMemoryOfTheDeviceIsTheDevicesError) {
  const std::vector<Node> nodes = Node::local(2).value();
  on_all_ranks(nodes, [&](const Group& world) {
    auto adapter = std::make_shared<FakeAdapter>();
    const DeviceGroup group(world, kSmallPieces);
    Buffer<Device> buffer = of_ones(adapter, 100);
    if (world.rank() == 0) buffer = Buffer<Device>(adapter, buffer.at() + 400, 800);  // the second half is not there
    const Result<void> result = group.all_gather(buffer, of_ones(adapter, 200), 100, kType);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), world.rank() == 0 ? ErrorCode::kDevice : ErrorCode::kCancelled) << result.error().to_string();
    expect_usable(group, adapter);
  });
}

TEST(DeviceFailure, WrongCountsOfVFormsAreNamedEverywhere) {
  const std::vector<Node> nodes = Node::local(3).value();
  on_all_ranks(nodes, [&](const Group& world) {
    auto adapter = std::make_shared<FakeAdapter>();
    const DeviceGroup group(world, kSmallPieces);
    const std::vector<std::uint64_t> counts(world.rank() == 1 ? 2 : 3, 10);
    const Result<void> result = group.all_to_all_v(of_ones(adapter, 30), counts, of_ones(adapter, 30), counts, kType);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), world.rank() == 1 ? ErrorCode::kInvalidArgument : ErrorCode::kCancelled);
    EXPECT_NE(result.error().to_string().find("all_to_all_v: 2 and 2 counts for 3 ranks"), std::string::npos) << result.error().to_string();
    expect_usable(group, adapter);
  });
}

TEST(DeviceFailure, WithoutMemoryForASlotTheCallIsRefusedAndWithOneItRuns) {
  LocalOptions options;
  options.config.memory_budget = 1 << 20;
  const std::vector<Node> nodes = Node::local(2, options).value();
  on_all_ranks(nodes, [&](const Group& world) {
    auto adapter = std::make_shared<FakeAdapter>();
    const Buffer<Device> buffer = of_ones(adapter, 300000);
    const Result<void> refused = DeviceGroup(world, {.piece_bytes = 2 << 20}).all_reduce(buffer, 300000, kType, ReduceOp::kSum);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().to_string().find("2097152 bytes do not fit a pool of 1048576"), std::string::npos)
        << refused.error().to_string();
    const DeviceGroup group(world, {.piece_bytes = 1 << 20, .slots = 3});
    ASSERT_TRUE(group.all_reduce(buffer, 300000, kType, ReduceOp::kSum));
    EXPECT_EQ(adapter->get<std::int64_t>(buffer.at(), 300000), std::vector<std::int64_t>(300000, 2));
    EXPECT_EQ(world.pool()->counters().peak, 1u << 20);
  });
}

TEST(DeviceFailure, MemoryOfBothKindsInOneCallIsAMismatch) {
  const std::vector<Node> nodes = Node::local(2).value();
  on_all_ranks(nodes, [&](const Group& world) {
    auto fake = std::make_shared<FakeAdapter>();
    auto cpu = std::make_shared<CpuAdapter>();
    const DeviceGroup group(world, kSmallPieces);
    std::vector<std::int64_t> host(100, 1);
    const Buffer<Device> buffer =
        world.rank() == 0 ? of_ones(fake, 100) : Buffer<Device>(cpu, CpuAdapter::pointer(host.data()), host.size() * 8);
    const Result<void> result = group.all_reduce(buffer, 100, kType, ReduceOp::kSum);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), ErrorCode::kMismatch) << result.error().to_string();
  });
}

TEST(DeviceFailure, APeerThatGoesEndsTheCallWithoutLosingASlot) {
  std::vector<Node> nodes = Node::local(2).value();
  auto adapter = std::make_shared<FakeAdapter>();
  const Group world = nodes[0].world();
  const DeviceGroup group(world, kSmallPieces);
  const Buffer<Device> buffer = of_ones(adapter, 100);
  std::thread other([&] { nodes[1].close().value(); });
  const Result<void> result = group.all_reduce(buffer, 100, kType, ReduceOp::kSum);
  other.join();
  ASSERT_FALSE(result);
  EXPECT_EQ(adapter->pending(), 0u);
  EXPECT_EQ(world.pool()->counters().in_use, 0u);
}

}  // namespace
}  // namespace nexar
