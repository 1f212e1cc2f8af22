#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "device/fake_adapter.h"
#include "nexar/device.h"

namespace nexar {
namespace {

using test::FakeAdapter;

Result<void> finish(DeviceAdapter& adapter, const DeviceCompletion& done) {
  while (!done.done()) adapter.poll();
  return done.result();
}

// Adds no default of its own: what FakeAdapter overrides are the single forms only.
TEST(DeviceAdapter, StagesAndPlacesListsBySingleSteps) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    FakeAdapter adapter(seed);
    std::vector<int> numbers(100);
    std::iota(numbers.begin(), numbers.end(), 0);
    const DevicePointer at = adapter.put(numbers);
    const std::vector<DeviceRegion> regions = {{at + 40, 40}, {at, 0}, {at + 4, 8}, {at + 396, 4}};
    std::vector<int> host(13);
    DeviceCompletion done;
    adapter.stage(regions, host.data(), DeviceStream::kDefault, done);
    ASSERT_TRUE(finish(adapter, done));
    EXPECT_EQ(host, (std::vector<int>{10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 1, 2, 99}));

    for (int& number : host) number += 1000;
    done.reset();
    adapter.place(host.data(), regions, DeviceStream::kDefault, done);
    ASSERT_TRUE(finish(adapter, done));
    const std::vector<int> after = adapter.get<int>(at, 100);
    EXPECT_EQ(after[0], 0);
    EXPECT_EQ(after[2], 1002);
    EXPECT_EQ(after[19], 1019);
    EXPECT_EQ(after[20], 20);
    EXPECT_EQ(after[99], 1099);
  }
}

TEST(DeviceAdapter, AnEmptyListIsDoneAtOnce) {
  FakeAdapter adapter;
  DeviceCompletion done;
  adapter.stage(std::span<const DeviceRegion>(), nullptr, DeviceStream::kDefault, done);
  ASSERT_TRUE(done.done());
  EXPECT_TRUE(done.result());
}

TEST(DeviceAdapter, AListEndsWithTheErrorOfAStepWhenAllHaveEnded) {
  for (std::size_t failing = 0; failing < 4; ++failing) {
    FakeAdapter adapter(static_cast<std::uint32_t>(failing));
    const DevicePointer at = adapter.allocate(64);
    const std::vector<DeviceRegion> regions = {{at, 16}, {at + 16, 16}, {at + 32, 16}, {at + 48, 16}};
    adapter.fail_after(failing);
    std::vector<std::byte> host(64);
    DeviceCompletion done;
    adapter.stage(regions, host.data(), DeviceStream::kDefault, done);
    const Result<void> result = finish(adapter, done);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), ErrorCode::kDevice);
    EXPECT_EQ(adapter.pending(), 0u);
  }
}

TEST(DeviceAdapter, ReducesThroughTheHostUnlessItCanItself) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    FakeAdapter adapter(seed);
    const DevicePointer left = adapter.put(std::vector<float>{1, 2, 3});
    const DevicePointer right = adapter.put(std::vector<float>{10, 20, 30});
    DeviceCompletion done;
    adapter.reduce(left, right, right, 3, DataType::kF32, ReduceOp::kSum, DeviceStream::kDefault, done);
    ASSERT_TRUE(finish(adapter, done));
    EXPECT_EQ(adapter.get<float>(left, 3), (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(adapter.get<float>(right, 3), (std::vector<float>{11, 22, 33}));
  }
}

TEST(DeviceAdapter, AReductionEndsWithWhateverFails) {
  for (std::size_t failing = 0; failing < 3; ++failing) {
    FakeAdapter adapter;
    const DevicePointer at = adapter.put(std::vector<float>{1, 2, 3});
    adapter.fail_after(failing);
    DeviceCompletion done;
    adapter.reduce(at, at, at, 3, DataType::kF32, ReduceOp::kSum, DeviceStream::kDefault, done);
    const Result<void> result = finish(adapter, done);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), ErrorCode::kDevice);
    EXPECT_EQ(adapter.pending(), 0u);
    EXPECT_EQ(adapter.get<float>(at, 3), (std::vector<float>{1, 2, 3}));
  }
  FakeAdapter adapter;
  const DevicePointer at = adapter.put(std::vector<float>{1});
  DeviceCompletion done;
  adapter.reduce(at, at, at, 1, DataType::kF32, ReduceOp::kXor, DeviceStream::kDefault, done);
  const Result<void> refused = finish(adapter, done);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kInvalidArgument);
  done.reset();
  adapter.reduce(at, at, at, ~std::uint64_t{0} / 2, DataType::kF32, ReduceOp::kSum, DeviceStream::kDefault, done);
  const Result<void> too_long = finish(adapter, done);
  ASSERT_FALSE(too_long);
  EXPECT_EQ(too_long.error().code(), ErrorCode::kOverloaded);
}

TEST(FakeAdapter, NoticesAccessOutsideItsMemory) {
  FakeAdapter adapter;
  const DevicePointer at = adapter.allocate(16);
  std::vector<std::byte> host(32);
  for (const DeviceRegion& wrong : {DeviceRegion{at + 1, 16}, DeviceRegion{at, 17}, DeviceRegion{DevicePointer(4096), 1},
                                    DeviceRegion{CpuAdapter::pointer(host.data()), 8}}) {
    DeviceCompletion done;
    adapter.stage(wrong.at, host.data(), wrong.bytes, DeviceStream::kDefault, done);
    const Result<void> result = finish(adapter, done);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), ErrorCode::kDevice);
  }
}

TEST(FakeAdapter, CompletesLateAndOutOfOrder) {
  FakeAdapter adapter(3);
  const DevicePointer at = adapter.put(std::vector<int>(64, 7));
  std::vector<int> host(64);
  std::vector<DeviceCompletion> done(64);
  for (std::size_t i = 0; i < 64; ++i) adapter.stage(at + i * 4, &host[i], 4, DeviceStream::kDefault, done[i]);
  bool out_of_order = false;
  for (std::size_t ended = 0; ended < 64;) {
    EXPECT_GT(adapter.pending(), 0u);
    adapter.poll();
    ended = 0;
    for (std::size_t i = 0; i < 64; ++i) {
      out_of_order |= i > 0 && done[i].done() && !done[i - 1].done();
      EXPECT_EQ(host[i] == 7, done[i].done());
      ended += done[i].done();
    }
  }
  EXPECT_TRUE(out_of_order);
}

TEST(CpuAdapter, IsDoneAtOnceAndCopiesNothingThatIsNotAskedFor) {
  CpuAdapter adapter;
  std::vector<float> memory = {1, 2, 3, 4};
  const DevicePointer at = CpuAdapter::pointer(memory.data());
  EXPECT_TRUE(adapter.host_addressable());
  EXPECT_EQ(adapter.host_address(at), memory.data());

  std::vector<float> host(2);
  DeviceCompletion staged;
  adapter.stage(at + 4, host.data(), 8, DeviceStream::kDefault, staged);
  ASSERT_TRUE(staged.done());
  EXPECT_EQ(host, (std::vector<float>{2, 3}));

  DeviceCompletion listed;
  const std::vector<DeviceRegion> ends = {{at, 4}, {at + 12, 4}};
  adapter.place(host.data(), ends, DeviceStream::kDefault, listed);
  ASSERT_TRUE(listed.done());
  EXPECT_EQ(memory, (std::vector<float>{2, 2, 3, 3}));

  DeviceCompletion reduced;
  adapter.reduce(at, at + 8, at, 2, DataType::kF32, ReduceOp::kProd, DeviceStream::kDefault, reduced);
  ASSERT_TRUE(reduced.done());
  EXPECT_EQ(memory, (std::vector<float>{6, 6, 3, 3}));
  EXPECT_TRUE(adapter.passed(adapter.record(DeviceStream::kDefault).value()).value());
}

TEST(MemoryRegistration, IsReleasedOnce) {
  auto adapter = std::make_shared<FakeAdapter>();
  std::vector<std::byte> memory(64);
  {
    MemoryRegistration first = MemoryRegistration::make(adapter, memory.data(), memory.size()).value();
    EXPECT_EQ(adapter->registrations(), 1u);
    MemoryRegistration second = std::move(first);
    EXPECT_EQ(adapter->registrations(), 1u);
    second.release();
    EXPECT_EQ(adapter->registrations(), 0u);
    second.release();
    second = MemoryRegistration::make(adapter, memory.data(), memory.size()).value();
    EXPECT_EQ(adapter->registrations(), 1u);
  }
  EXPECT_EQ(adapter->registrations(), 0u);
}

}  // namespace
}  // namespace nexar
