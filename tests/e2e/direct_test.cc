// Collectives of ranks that share memory, through the whole runtime: which calls go there, how they mix, and how they end.
#include <chrono>
#include <cstdint>
#include <deque>
#include <iterator>
#include <latch>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ranks.h"

namespace nexar::test {
namespace {

using namespace std::chrono_literals;

Config sharing() {
  Config config;
  config.transport = Transport::kShm;
  config.entry_timeout = 20s;
  config.progress_timeout = 20s;
  return config;
}

std::string text(const Result<void>& result) { return result ? "success" : result.error().sentence(); }

void expect_usable(const Group& group) {
  std::int32_t sum = 0;
  const std::int32_t one = 1;
  const Result<void> result = group.all_reduce(&one, &sum, 1, DataType::kI32, ReduceOp::kSum);
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(sum, group.size());
}

TEST(Direct, GroupsOfOneHostShareMemory) {
  Ranks ranks(4, sharing());
  ranks.run([](const Group& world) {
    EXPECT_TRUE(world.shares_memory());
    const std::optional<Group> half = world.split(world.rank() % 2, 0).value();
    EXPECT_TRUE(half->shares_memory());
    expect_usable(*half);
    expect_usable(world);
    EXPECT_FALSE(half->split(half->rank(), 0).value()->shares_memory());  // by itself
  });
}

TEST(Direct, IsNotUsedWhereTheNetworkIsAskedFor) {
  Config config;
  config.transport = Transport::kQuic;
  Ranks ranks(2, config);
  ranks.run([](const Group& world) {
    EXPECT_FALSE(world.shares_memory());
    expect_usable(world);
  });
}

// Every rank comes to the same decision when there is no room for one more group.
TEST(Direct, GroupsBeyondTheBudgetPassMessages) {
  Config config = sharing();
  config.shm_budget = 12u << 20;
  Ranks ranks(2, config);
  ranks.run([](const Group& world) {
    int shared = 0;
    std::vector<Group> groups;
    for (int i = 0; i < 8; ++i) groups.push_back(*world.split(0, 0).value());
    for (const Group& group : groups) {
      expect_usable(group);
      const std::uint8_t mine = group.shares_memory() ? 1 : 0;
      std::vector<std::uint8_t> all(2);
      ASSERT_TRUE(group.all_gather(&mine, all.data(), 1, DataType::kU8));
      EXPECT_EQ(all[0], all[1]);
      shared += mine;
    }
    EXPECT_GT(shared, 0);
    EXPECT_LT(shared, 8);
  });
}

// One collective with values that tell who gave them in which call; `start` is chosen by each rank for itself.
class Mixed {
 public:
  Mixed(const Group& world, int call, std::uint64_t count)
      : world_(world), call_(call), n_(static_cast<std::uint64_t>(world.size())), in_(count * n_), out_(count * n_, -1), count_(count) {
    for (std::size_t i = 0; i < in_.size(); ++i) in_[i] = value(world.rank(), i);
  }

  Operation start(int kind) {
    const Rank root = call_ % world_.size();
    switch (kind) {
      case 0: return world_.start_all_reduce(in_.data(), out_.data(), count_, DataType::kI64, ReduceOp::kSum);
      case 1: return world_.start_broadcast(in_.data(), count_, DataType::kI64, root);
      case 2: return world_.start_all_gather(in_.data(), out_.data(), count_, DataType::kI64);
      case 3: return world_.start_reduce(in_.data(), out_.data(), count_, DataType::kI64, ReduceOp::kMax, root);
      case 4: return world_.start_all_gather_v(in_.data(), out_.data(), counts(), DataType::kI64);
      case 5: return world_.start_all_to_all(in_.data(), out_.data(), count_, DataType::kI64);
      default: return world_.start_barrier();
    }
  }

  Result<void> run(int kind) {
    const Rank root = call_ % world_.size();
    switch (kind) {
      case 0: return world_.all_reduce(in_.data(), out_.data(), count_, DataType::kI64, ReduceOp::kSum);
      case 1: return world_.broadcast(in_.data(), count_, DataType::kI64, root);
      case 2: return world_.all_gather(in_.data(), out_.data(), count_, DataType::kI64);
      case 3: return world_.reduce(in_.data(), out_.data(), count_, DataType::kI64, ReduceOp::kMax, root);
      case 4: return world_.all_gather_v(in_.data(), out_.data(), counts(), DataType::kI64);
      case 5: return world_.all_to_all(in_.data(), out_.data(), count_, DataType::kI64);
      default: return world_.barrier();
    }
  }

  void expect_right(int kind) const {
    const Rank root = call_ % world_.size();
    for (std::uint64_t i = 0; i < count_; ++i) {
      std::int64_t sum = 0;
      for (Rank rank = 0; rank < world_.size(); ++rank) sum += value(rank, i);
      if (kind == 0) {
        ASSERT_EQ(out_[i], sum) << call_;
      } else if (kind == 1) {
        ASSERT_EQ(in_[i], value(root, i)) << call_;
      } else if (kind == 3 && world_.rank() == root) {
        ASSERT_EQ(out_[i], value(world_.size() - 1, i)) << call_;
      }
      for (Rank rank = 0; rank < world_.size() && (kind == 2 || kind == 4 || kind == 5); ++rank) {
        const std::uint64_t from = kind == 5 ? static_cast<std::uint64_t>(world_.rank()) * count_ + i : i;
        ASSERT_EQ(out_[static_cast<std::uint64_t>(rank) * count_ + i], value(rank, from)) << call_;
      }
    }
  }

 private:
  std::int64_t value(Rank rank, std::uint64_t i) const {
    return std::int64_t{call_} * 1'000'000 + std::int64_t{rank} * 100'000 + static_cast<std::int64_t>(i % 99'991);
  }
  std::vector<std::uint64_t> counts() const { return std::vector<std::uint64_t>(n_, count_); }

  const Group world_;
  const int call_;
  const std::uint64_t n_;
  std::vector<std::int64_t> in_;
  std::vector<std::int64_t> out_;
  const std::uint64_t count_;
};

TEST(Direct, BlockingAndOtherCallsMixDifferentlyOnEveryRank) {
  constexpr int kCalls = 150;
  Ranks ranks(3, sharing());
  ranks.run([](const Group& world) {
    std::mt19937_64 same(7);
    std::mt19937_64 own(static_cast<std::uint64_t>(world.rank()));
    std::deque<std::pair<int, Mixed>> calls;
    std::vector<Operation> flying;
    constexpr std::uint64_t kCounts[] = {0, 1, 6, 100, 9'000, 70'000};
    for (int i = 0; i < kCalls; ++i) {
      const int kind = static_cast<int>(same() % 7);
      const std::uint64_t count = kCounts[same() % std::size(kCounts)];
      Mixed& call = calls.emplace_back(std::piecewise_construct, std::tuple(kind), std::tuple(world, i, count)).second;
      if (own() % 2 == 0) {
        flying.push_back(call.start(kind));
      } else {
        const Result<void> result = call.run(kind);
        ASSERT_TRUE(result) << result.error().to_string();
      }
      while (!flying.empty() && own() % 3 == 0) {
        const Result<Status> result = flying.back().wait();
        ASSERT_TRUE(result) << result.error().to_string();
        flying.pop_back();
      }
    }
    for (Operation& one : flying) ASSERT_TRUE(one.wait());
    for (const auto& [kind, call] : calls) call.expect_right(kind);
  });
}

// Longer than anybody spins, and than the others wait before they ask.
TEST(Direct, ALateRankIsWaitedFor) {
  Ranks ranks(3, sharing());
  ranks.run([](const Group& world) {
    for (const std::uint64_t count : {std::uint64_t{2}, std::uint64_t{300'000}}) {
      std::vector<std::int32_t> data(count, 1);
      if (world.rank() == 1) std::this_thread::sleep_for(120ms);
      const Result<void> result = world.all_reduce(data.data(), data.data(), count, DataType::kI32, ReduceOp::kSum);
      ASSERT_TRUE(result) << result.error().to_string();
      EXPECT_EQ(data, std::vector<std::int32_t>(count, 3));
    }
  });
}

// Rank 1 has finished its call, on its own thread, before rank 0 can see that it was another.
TEST(Direct, WhatARankCalledThatIsDoneIsNamed) {
  Ranks ranks(2, sharing());
  std::latch done(2);
  ranks.run([&](const Group& world) {
    std::int32_t x = world.rank();
    std::int32_t out = 0;
    if (world.rank() == 1) {
      EXPECT_EQ(text(world.reduce(&x, &out, 1, DataType::kI32, ReduceOp::kSum, 0)), "success");
      done.arrive_and_wait();
    } else {
      done.arrive_and_wait();
      EXPECT_EQ(text(world.all_reduce(&x, &out, 1, DataType::kI32, ReduceOp::kSum)),
                "rank 0 called all_reduce(count=1, i32, sum) and rank 1 called reduce(count=1, i32, sum, root=0)");
    }
    expect_usable(world);
  });
}

// Whoever waits for nobody may be done before the other has come; the later of the two finds out.
TEST(Direct, TwoWhoBothTakeThemselvesForTheRootAreNamed) {
  Ranks ranks(2, sharing());
  for (int round = 0; round < 30; ++round) {
    std::vector<std::string> said(2);
    ranks.run([&](const Group& world) {
      std::int32_t x = world.rank();
      std::vector<std::int32_t> out(2);
      const Rank other = 1 - world.rank();
      const Result<void> result = round % 3 == 0   ? world.broadcast(&x, 1, DataType::kI32, world.rank())
                                  : round % 3 == 1 ? world.reduce(&x, out.data(), 1, DataType::kI32, ReduceOp::kSum, other)
                                                   : world.gather(&x, out.data(), 1, DataType::kI32, other);
      said[static_cast<std::size_t>(world.rank())] = text(result);
      EXPECT_TRUE(result || result.error().code() == ErrorCode::kMismatch) << text(result);
      expect_usable(world);
    });
    const std::string& named = said[0] == "success" ? said[1] : said[0];
    EXPECT_NE(named.find("root=0"), std::string::npos) << named;
    EXPECT_NE(named.find("root=1"), std::string::npos) << named;
  }
}

TEST(Direct, ABroadcastOfWhichNobodyIsTheRootIsAMismatchForAll) {
  Ranks ranks(3, sharing());
  ranks.run([](const Group& world) {
    for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{500'000}}) {
      std::vector<std::int32_t> data(count);
      const Result<void> result = world.broadcast(data.data(), count, DataType::kI32, (world.rank() + 1) % 3);
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().code(), ErrorCode::kMismatch) << text(result);
      expect_usable(world);
    }
  });
}

// One goes through memory and the other by messages: each hears of the other all the same.
TEST(Direct, AMismatchWithACallByMessagesIsNamed) {
  Ranks ranks(2, sharing());
  ranks.run([](const Group& world) {
    std::int32_t x = world.rank();
    std::vector<std::int32_t> out(2);
    const std::vector<std::uint64_t> counts = {1, 1};
    const Result<void> result = world.rank() == 0 ? world.all_gather(&x, out.data(), 1, DataType::kI32)
                                                  : world.all_gather_v(&x, out.data(), counts, DataType::kI32);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), ErrorCode::kMismatch);
    EXPECT_NE(text(result).find("rank 1 called all_gather_v("), std::string::npos) << text(result);
    EXPECT_NE(text(result).find("rank 0 called all_gather(count=1, i32)"), std::string::npos) << text(result);
    expect_usable(world);
  });
}

TEST(Direct, AnErrorInTheArgumentsReachesThoseWhoBlock) {
  Ranks ranks(3, sharing());
  ranks.run([](const Group& world) {
    for (int i = 0; i < 20; ++i) {
      std::int32_t x = 1;
      std::int32_t sum = 0;
      const Result<void> result = world.all_reduce(world.rank() == i % 3 ? nullptr : &x, &sum, 1, DataType::kI32, ReduceOp::kSum);
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().code(), world.rank() == i % 3 ? ErrorCode::kInvalidArgument : ErrorCode::kCancelled) << text(result);
      expect_usable(world);
    }
  });
}

// Cancelled before its turn has come: what was called before it still succeeds, and so does what comes after.
TEST(Direct, ACallThatIsDroppedInTheQueueSpoilsNoOther) {
  Ranks ranks(2, sharing());
  std::latch dropped(1);
  ranks.run([&](const Group& world) {
    std::int32_t first = 1;
    std::int32_t second = 1;
    std::int32_t third = 1;
    if (world.rank() == 0) {
      Operation one = world.start_all_reduce(&first, &first, 1, DataType::kI32, ReduceOp::kSum);
      { const Operation two = world.start_all_reduce(&second, &second, 1, DataType::kI32, ReduceOp::kSum); }
      Operation three = world.start_all_reduce(&third, &third, 1, DataType::kI32, ReduceOp::kSum);
      dropped.count_down();
      EXPECT_TRUE(one.wait());
      EXPECT_TRUE(three.wait());
    } else {
      dropped.wait();
      EXPECT_EQ(text(world.all_reduce(&first, &first, 1, DataType::kI32, ReduceOp::kSum)), "success");
      const Result<void> result = world.all_reduce(&second, &second, 1, DataType::kI32, ReduceOp::kSum);
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().code(), ErrorCode::kCancelled);
      EXPECT_EQ(text(world.all_reduce(&third, &third, 1, DataType::kI32, ReduceOp::kSum)), "success");
    }
    EXPECT_EQ(first, 2);
    EXPECT_EQ(third, 2);
    expect_usable(world);
  });
}

// A user op runs where it may not call nexar, and is told so.
TEST(Direct, AUserOpThatCallsNexarIsRefused) {
  Ranks ranks(2, sharing());
  ranks.run([](const Group& world) {
    std::string said;
    UserOp op;
    op.name = "curious";
    op.commutes = true;
    op.function = [&](const void* left, const void* right, void* out, std::size_t count, DataType) {
      said = text(world.barrier());
      for (std::size_t i = 0; i < count; ++i)
        static_cast<std::int32_t*>(out)[i] = static_cast<const std::int32_t*>(left)[i] + static_cast<const std::int32_t*>(right)[i];
    };
    std::int32_t x = 1;
    const Result<void> result = world.all_reduce(&x, &x, 1, DataType::kI32, op);
    ASSERT_TRUE(result) << result.error().to_string();
    EXPECT_EQ(x, 2);
    EXPECT_NE(said.find("from inside a callback"), std::string::npos) << said;
  });
}

}  // namespace
}  // namespace nexar::test
