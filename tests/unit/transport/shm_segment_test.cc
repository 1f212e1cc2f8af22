#include "transport/shm/segment.h"

#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace nexar::transport::shm {
namespace {

constexpr std::uint64_t kBudget = 32u << 20;

std::shared_ptr<HostSegment> make(int ranks, std::uint64_t budget = kBudget) { return HostSegment::create(ranks, 7, budget).value(); }

io::FileDescriptor descriptor_of(const HostSegment& segment) { return io::FileDescriptor(::dup(segment.fd())); }

TEST(HostSegment, IsTheSameForWhoeverGetsItsDescriptor) {
  const auto made = make(3);
  const auto opened = HostSegment::open(descriptor_of(*made), made->bytes(), 3, 7).value();
  made->ring(0, 2, 1)[5] = std::byte{42};
  EXPECT_EQ(opened->ring(0, 2, 1)[5], std::byte{42});
  EXPECT_EQ(&made->lines(1, 2), &opened->lines(1, 2)) << "within a process it is mapped once";
}

TEST(HostSegment, GivesEveryPairAndLaneMemoryOfItsOwn) {
  for (const int ranks : {2, 3, 16, 64}) {
    const auto segment = make(ranks, 48u << 20);
    std::set<std::byte*> ends;
    for (int from = 0; from < ranks; ++from)
      for (int to = 0; to < ranks; ++to)
        for (std::size_t lane = 0; lane < kLanes && from != to; ++lane) {
          const base::ByteSpan ring = segment->ring(from, to, lane);
          ASSERT_GE(ring.size(), 512u);
          ASSERT_TRUE((ring.size() & (ring.size() - 1)) == 0);
          const auto above = ends.upper_bound(ring.data());
          ASSERT_TRUE(ends.insert(ring.data()).second);
          ASSERT_TRUE(above == ends.end() || *above >= ring.data() + ring.size());
        }
    const base::ByteSpan block = segment->block(1, 100).value();
    EXPECT_GE(block.data(), *ends.rbegin());
  }
}

TEST(HostSegment, CannotBeResized) {
  const auto segment = make(2);
  EXPECT_NE(::ftruncate(segment->fd(), 4096), 0);
  EXPECT_NE(::ftruncate(segment->fd(), static_cast<off_t>(2 * segment->bytes())), 0);
}

TEST(HostSegment, RefusesWhatIsNone) {
  const auto segment = make(2);
  const auto code = [](const Result<std::shared_ptr<HostSegment>>& result) {
    return result ? ErrorCode::kInternal : result.error().code();
  };
  EXPECT_EQ(code(HostSegment::open(descriptor_of(*segment), segment->bytes(), 3, 7)), ErrorCode::kRefused) << "another number of ranks";
  EXPECT_EQ(code(HostSegment::open(descriptor_of(*segment), segment->bytes(), 2, 8)), ErrorCode::kRefused) << "another epoch";
  EXPECT_EQ(code(HostSegment::open(descriptor_of(*segment), segment->bytes() - 4096, 2, 7)), ErrorCode::kRefused) << "another size";
  EXPECT_EQ(code(HostSegment::open(io::FileDescriptor(::open("/dev/zero", O_RDWR)), 4096, 2, 7)), ErrorCode::kRefused) << "no memory";
  std::memset(const_cast<char*>(reinterpret_cast<const char*>(&segment->rank(0))) - 128, 0x5a, 40);  // its header
  EXPECT_EQ(code(HostSegment::open(descriptor_of(*segment), segment->bytes(), 2, 7)), ErrorCode::kRefused) << "no header";
}

TEST(HostSegment, SaysThatItsBudgetIsTooSmall) {
  const auto none = HostSegment::create(64, 1, 1u << 20);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), ErrorCode::kOverloaded);
  EXPECT_NE(none.error().sentence().find("budget is 1MiB"), std::string::npos) << none.error().sentence();
}

TEST(HostSegment, GivesAllWhoNameAGroupTheSameBlock) {
  const auto segment = make(4);
  constexpr int kGroups = 50;
  std::vector<std::vector<std::byte*>> got(4, std::vector<std::byte*>(kGroups));
  std::vector<std::thread> ranks;
  for (std::size_t rank = 0; rank < 4; ++rank)
    ranks.emplace_back([&, rank] {
      for (int i = 0; i < kGroups; ++i) {
        const int group = (i * 7 + static_cast<int>(rank) * 13) % kGroups;  // in different orders
        const base::ByteSpan block = segment->block(static_cast<std::uint64_t>(group) + 1, 1000).value();
        EXPECT_EQ(block.size(), 1000u);
        got[rank][static_cast<std::size_t>(group)] = block.data();
      }
    });
  for (std::thread& rank : ranks) rank.join();
  for (std::size_t rank = 1; rank < 4; ++rank) EXPECT_EQ(got[rank], got[0]);
  EXPECT_EQ(std::set<std::byte*>(got[0].begin(), got[0].end()).size(), static_cast<std::size_t>(kGroups));
}

TEST(HostSegment, SaysWhenItsBlocksAreSpentAndStaysUsable) {
  const auto segment = make(2, 8u << 20);
  std::uint64_t key = 1;
  Result<base::ByteSpan> block = segment->block(key, 1u << 20);
  for (; block; block = segment->block(++key, 1u << 20)) {
    for (const std::byte byte : *block) ASSERT_EQ(byte, std::byte{0});
    std::memset(block->data(), 1, block->size());
  }
  EXPECT_EQ(block.error().code(), ErrorCode::kOverloaded);
  EXPECT_GT(key, 3u);
  EXPECT_EQ(segment->block(key, 1u << 20).error().code(), ErrorCode::kOverloaded) << "for all who ask";
  EXPECT_TRUE(segment->block(1, 1u << 20)) << "those that were given stay";
  EXPECT_EQ(segment->block(1, 1000).error().code(), ErrorCode::kMismatch);
}

TEST(HostSegment, NamesABoundedNumberOfBlocks) {
  const auto segment = make(2, 8u << 20);
  for (std::uint64_t key = 1; key <= kBlocksMax; ++key) ASSERT_TRUE(segment->block(key, 64)) << key;
  EXPECT_EQ(segment->block(kBlocksMax + 1, 64).error().code(), ErrorCode::kOverloaded);
  EXPECT_TRUE(segment->block(kBlocksMax, 64)) << "those that were given stay";
}

}  // namespace
}  // namespace nexar::transport::shm
