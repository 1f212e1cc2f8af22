#include "nexar/buffer_pool.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "device/fake_adapter.h"

namespace nexar {
namespace {

TEST(BufferPool, UsesMemoryAgain) {
  const auto pool = BufferPool::make(1 << 20);
  std::byte* first = nullptr;
  {
    BufferPool::Lease lease = pool->take(5000).value();
    first = lease.data();
    EXPECT_EQ(lease.bytes(), 5000u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 4096, 0u);
    EXPECT_EQ(pool->counters().in_use, 8192u);
  }
  EXPECT_EQ(pool->counters().in_use, 0u);
  EXPECT_EQ(pool->counters().kept, 8192u);
  BufferPool::Lease again = pool->take(8192).value();
  EXPECT_EQ(again.data(), first);
  EXPECT_EQ(pool->counters().reused, 1u);
  EXPECT_EQ(pool->counters().taken, 2u);
  EXPECT_EQ(pool->counters().kept, 0u);
}

TEST(BufferPool, RefusesWhatDoesNotFitTheBudgetAndSaysWhy) {
  const auto pool = BufferPool::make(16384);
  BufferPool::Lease lease = pool->take(8192).value();
  const Result<BufferPool::Lease> refused = pool->take(8193);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kOverloaded);
  EXPECT_NE(refused.error().sentence().find("16384 bytes do not fit a pool of 16384, of which 8192 are in use"), std::string::npos)
      << refused.error().sentence();
  EXPECT_FALSE(pool->take(~std::size_t{0}));
  EXPECT_EQ(pool->counters().refused, 2u);
  EXPECT_TRUE(pool->take(8192));
}

TEST(BufferPool, GivesUpWhatItKeepsForOthersSizes) {
  const auto pool = BufferPool::make(16384);
  for (const std::size_t bytes : {4096u, 8192u, 16384u, 8192u, 4096u, 16384u}) {
    ASSERT_TRUE(pool->take(bytes));
    EXPECT_LE(pool->counters().in_use + pool->counters().kept, 16384u);
  }
  EXPECT_EQ(pool->counters().peak, 16384u);
  pool->trim();
  EXPECT_EQ(pool->counters().kept, 0u);
}

TEST(BufferPool, RegistersABlockOnceForEachAdapter) {
  auto first = std::make_shared<test::FakeAdapter>();
  auto second = std::make_shared<test::FakeAdapter>();
  {
    const auto pool = BufferPool::make(1 << 20);
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE(pool->take(4096, first));
      ASSERT_TRUE(pool->take(4096, second));
    }
    EXPECT_EQ(first->registrations_ever(), 1u);
    EXPECT_EQ(second->registrations_ever(), 1u);
    EXPECT_EQ(first->registrations(), 1u);
    pool->trim();
    EXPECT_EQ(first->registrations(), 0u);
    BufferPool::Lease lease = pool->take(4096, first).value();
  }
  EXPECT_EQ(first->registrations(), 0u);
  EXPECT_EQ(first->registrations_ever(), 2u);
}

TEST(BufferPool, OutlivesItsOwnerWhileSomethingIsLent) {
  BufferPool::Lease lease;
  {
    const auto pool = BufferPool::make(1 << 20);
    lease = pool->take(100).value();
  }
  std::memset(lease.data(), 1, lease.bytes());
  lease = {};
}

TEST(BufferPool, IsSharedByThreads) {
  const auto pool = BufferPool::make(1 << 20);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&pool, t] {
      for (int i = 0; i < 500; ++i) {
        const std::size_t bytes = static_cast<std::size_t>(1000 * (t + 1) + i * 37);
        BufferPool::Lease lease = pool->take(bytes).value();
        std::memset(lease.data(), t, lease.bytes());
        EXPECT_EQ(lease.data()[bytes - 1], static_cast<std::byte>(t));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool->counters().in_use, 0u);
  EXPECT_EQ(pool->counters().taken, 2000u);
  EXPECT_LE(pool->counters().kept, 1u << 20);
}

}  // namespace
}  // namespace nexar
