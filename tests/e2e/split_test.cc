// Groups made of groups.
#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ranks.h"

namespace nexar::test {
namespace {

std::int32_t sum(const Group& group, std::int32_t mine) {
  std::int32_t all = 0;
  group.all_reduce(&mine, &all, 1, DataType::kI32, ReduceOp::kSum).value();
  return all;
}

TEST(Split, MakesFullGroups) {
  Ranks ranks(5);
  ranks.run([](const Group& world) {
    // Odd and even ranks, the highest first.
    const std::optional<Group> half = world.split(world.rank() % 2, -world.rank()).value();
    ASSERT_TRUE(half);
    const int size = world.rank() % 2 == 0 ? 3 : 2;
    ASSERT_EQ(half->size(), size);
    EXPECT_EQ(half->rank(), size - 1 - world.rank() / 2);
    EXPECT_NE(half->id(), world.id());
    EXPECT_EQ(half->world_rank(half->rank()), world.rank());
    EXPECT_EQ(half->rank_of(world.rank()), half->rank());
    EXPECT_EQ(half->rank_of((world.rank() + 1) % 2), std::nullopt);
    EXPECT_EQ(half->world_rank(size), std::nullopt);
    EXPECT_EQ(sum(*half, world.rank()), world.rank() % 2 == 0 ? 6 : 4);

    // Messages speak of the group's ranks.
    const Rank next = (half->rank() + 1) % size;
    const Rank previous = (half->rank() + size - 1) % size;
    const int mine = world.rank();
    int theirs = -1;
    const Status got = half->exchange(&mine, sizeof mine, next, 1, &theirs, sizeof theirs, kAnySource, 1).value();
    EXPECT_EQ(got.source, previous);
    EXPECT_EQ(theirs, *half->world_rank(previous));
    EXPECT_EQ(half->send(&mine, sizeof mine, size, 1).error().code(), ErrorCode::kInvalidArgument);

    // Nested, and by itself.
    const std::optional<Group> single = half->split(half->rank(), 0).value();
    ASSERT_TRUE(single);
    EXPECT_EQ(single->size(), 1);
    EXPECT_EQ(sum(*single, 9), 9);
    EXPECT_EQ(sum(world, 1), 5);
  });
}

// A node keeps something for a bounded number of groups that only its peer has made yet; those that it makes itself never count.
TEST(Split, MayBeCalledAnyNumberOfTimes) {
  for (const Transport transport : {Transport::kQuic, Transport::kAuto}) {
    Config config;
    config.transport = transport;
    Ranks ranks(2, config);
    ranks.run([](const Group& world) {
      for (int i = 0; i < 150; ++i) {
        const std::optional<Group> both = world.split(i, 0).value();
        const Rank other = 1 - both->rank();
        int theirs = -1;
        both->exchange(&i, sizeof i, other, 1, &theirs, sizeof theirs, other, 1).value();
        EXPECT_EQ(theirs, i);
        EXPECT_EQ(sum(*both, i), 2 * i);
      }
    });
    for (Rank rank = 0; rank < 2; ++rank) EXPECT_EQ(ranks.node(rank).counters().value().protocol_errors, 0u);
  }
}

TEST(Split, WithoutAColorGivesNothing) {
  Ranks ranks(3);
  ranks.run([](const Group& world) {
    const std::optional<Group> part = world.split(world.rank() == 1 ? std::nullopt : std::optional(-7), 0).value();
    EXPECT_EQ(part.has_value(), world.rank() != 1);
    if (part) {
      EXPECT_EQ(sum(*part, world.rank()), 2);
    }
    EXPECT_EQ(sum(world, 1), 3);
  });
}

// Overlapping groups and their parent, from three threads of each rank.
TEST(Split, GroupsThatOverlapDoNotDisturbEachOther) {
  Ranks ranks(4);
  ranks.run([](const Group& world) {
    const Group pair = *world.split(world.rank() / 2, 0).value();
    const Group other = *world.split(world.rank() % 2, 0).value();
    std::vector<std::thread> threads;
    for (const Group* group : {&world, &pair, &other})
      threads.emplace_back([group] {
        for (int i = 0; i < 200; ++i) {
          const std::size_t count = i % 50 == 0 ? 40'000 : 3;
          std::vector<std::int32_t> data(count, group->rank() + i);
          group->all_reduce(data.data(), data.data(), count, DataType::kI32, ReduceOp::kMax).value();
          ASSERT_EQ(data, std::vector<std::int32_t>(count, group->size() - 1 + i));
        }
      });
    for (std::thread& thread : threads) thread.join();
  });
}

}  // namespace
}  // namespace nexar::test
