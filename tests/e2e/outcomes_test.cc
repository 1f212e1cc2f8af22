// How collectives between real nodes end when they do not succeed: what each rank is told, and that the group is usable afterwards.
#include <chrono>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ranks.h"

namespace nexar::test {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kLarge = 100'000;  // elements: such messages are granted

// A rank that fails its test leaves the others waiting; not for long.
Config impatient() {
  Config config = Config::from_env().value();
  config.entry_timeout = 20s;
  config.progress_timeout = 20s;
  return config;
}

void expect_usable(const Group& group) {
  std::int32_t sum = 0;
  const std::int32_t one = 1;
  const Result<void> result = group.all_reduce(&one, &sum, 1, DataType::kI32, ReduceOp::kSum);
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(sum, group.size());
}

std::string text(const Result<void>& result) { return result ? "success" : result.error().sentence(); }

TEST(Outcomes, AMismatchIsNamedOnEveryRank) {
  Ranks ranks(3, impatient());
  ranks.run([](const Group& world) {
    std::vector<float> data(kLarge + 1);
    for (const std::uint64_t count : {std::uint64_t{4}, kLarge}) {
      const bool differs = world.rank() == 1;
      const auto expect_named = [&](const Result<void>& result, const std::string& theirs) {
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().code(), ErrorCode::kMismatch) << result.error().to_string();
        EXPECT_NE(text(result).find("rank 1 called " + theirs), std::string::npos) << text(result);
        expect_usable(world);
      };
      expect_named(world.all_reduce(data.data(), data.data(), differs ? count + 1 : count, DataType::kF32, ReduceOp::kSum),
                   "all_reduce(count=" + std::to_string(count + 1) + ", f32, sum)");
      expect_named(world.all_reduce(data.data(), data.data(), count, DataType::kF32, differs ? ReduceOp::kMax : ReduceOp::kSum),
                   "all_reduce(count=" + std::to_string(count) + ", f32, max)");
      expect_named(differs ? world.barrier() : world.broadcast(data.data(), count, DataType::kF32, 1), "barrier()");
    }
  });
}

TEST(Outcomes, AMismatchIsNamedWhereNobodySends) {
  Ranks ranks(2, impatient());
  ranks.run([](const Group& world) {
    std::int32_t x = 0;
    const Result<void> result = world.broadcast(&x, 1, DataType::kI32, 1 - world.rank());
    ASSERT_FALSE(result);
    EXPECT_EQ(text(result), "rank 0 called broadcast(count=1, i32, root=1) and rank 1 called broadcast(count=1, i32, root=0)");
    expect_usable(world);
  });
}

// Rank 1 sends rank 0 one element more than rank 0 expects. A small one is gone, and rank 1 done, before anybody can see that.
TEST(Outcomes, CountsOfRanksAreComparedInPairs) {
  Ranks ranks(2, impatient());
  ranks.run([](const Group& world) {
    for (const std::uint64_t count : {std::uint64_t{4}, kLarge}) {
      const bool sends = world.rank() == 1;
      const std::vector<std::int32_t> send(count + 1);
      std::vector<std::int32_t> recv(count);
      const std::vector<std::uint64_t> to = {sends ? count + 1 : 0, 0};
      const std::vector<std::uint64_t> from = {0, sends ? 0 : count};
      const Result<void> result = world.all_to_all_v(send.data(), to, recv.data(), from, DataType::kI32);
      if (sends && count < kLarge) {
        EXPECT_TRUE(result);
      } else {
        EXPECT_FALSE(result);
        EXPECT_NE(text(result).find(std::to_string(4 * (count + 1))), std::string::npos) << text(result);
        EXPECT_NE(text(result).find(std::to_string(4 * count)), std::string::npos) << text(result);
      }
      expect_usable(world);
    }
  });
}

TEST(Outcomes, AnErrorInTheArgumentsOfOneEndsTheOthers) {
  Ranks ranks(3, impatient());
  ranks.run([](const Group& world) {
    std::vector<float> data(kLarge);
    for (const std::uint64_t count : {std::uint64_t{4}, kLarge}) {
      void* recv = world.rank() == 2 ? nullptr : data.data();
      const Result<void> result = world.all_reduce(data.data(), recv, count, DataType::kF32, ReduceOp::kSum);
      ASSERT_FALSE(result);
      if (world.rank() == 2) {
        EXPECT_EQ(result.error().code(), ErrorCode::kInvalidArgument);
      } else {
        EXPECT_EQ(result.error().code(), ErrorCode::kCancelled);
        EXPECT_NE(text(result).find("rank 2 failed with invalid_argument: all_reduce: the buffer to receive in is null"), std::string::npos)
            << text(result);
      }
      expect_usable(world);
    }
  });
}

TEST(Outcomes, AnOperationThatIsDroppedEndsTheOthers) {
  Ranks ranks(3, impatient());
  std::latch dropped(1);
  ranks.run([&](const Group& world) {
    std::vector<float> data(kLarge);
    if (world.rank() == 0) {
      { const Operation one = world.start_all_reduce(data.data(), data.data(), kLarge, DataType::kF32, ReduceOp::kSum); }
      dropped.count_down();
    } else {
      if (world.rank() == 1) dropped.wait();  // rank 2 is in it from the beginning, rank 1 late
      const Result<void> result = world.all_reduce(data.data(), data.data(), kLarge, DataType::kF32, ReduceOp::kSum);
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().code(), ErrorCode::kCancelled) << result.error().to_string();
      EXPECT_NE(text(result).find("rank 0 ended it"), std::string::npos) << text(result);
    }
    expect_usable(world);
  });
}

// At any moment: whoever had done its part of the call by then has the right result, and all others are told who ended it.
TEST(Outcomes, AnOperationThatIsDroppedAtAnyMomentIsDoneOrEndsTheOthers) {
  Ranks ranks(3, impatient());
  ranks.run([&](const Group& world) {
    for (int round = 0; round < 40; ++round) {
      std::vector<float> data(kLarge, 1);
      if (world.rank() == round % 3) {
        const Operation dropped = world.start_all_reduce(data.data(), data.data(), kLarge, DataType::kF32, ReduceOp::kSum);
        std::this_thread::sleep_for(std::chrono::microseconds(37 * (round % 20)));
      } else {
        const Result<void> result = world.all_reduce(data.data(), data.data(), kLarge, DataType::kF32, ReduceOp::kSum);
        if (result) {
          EXPECT_EQ(data, std::vector<float>(kLarge, 3)) << round;
        } else {
          EXPECT_EQ(result.error().code(), ErrorCode::kCancelled) << result.error().to_string();
          EXPECT_NE(text(result).find("rank " + std::to_string(round % 3) + " ended it"), std::string::npos) << text(result);
        }
      }
      expect_usable(world);
    }
  });
}

// Of a small one rank 1 has all that it needs when it comes, and the verdict is perhaps still on its way.
TEST(Outcomes, WhoeverComesAfterADeadlineGetsTheVerdict) {
  Ranks ranks(2, impatient());
  for (const std::uint64_t count : {std::uint64_t{4}, std::uint64_t{1000}, kLarge}) {
    std::latch passed(2);
    std::string first;
    ranks.run([&](const Group& world) {
      std::vector<std::int32_t> data(count);
      CallOptions options;
      if (world.rank() == 0)
        options.deadline = 200ms;
      else
        passed.arrive_and_wait();
      const Result<void> result = world.all_reduce(data.data(), data.data(), count, DataType::kI32, ReduceOp::kSum, options);
      if (world.rank() == 0) {
        EXPECT_EQ(text(result).rfind(fmt::format("all_reduce(count={}, i32, sum) did not end within the deadline of 200ms: not entered by "
                                                 "rank 1; ",
                                                 count),
                                     0),
                  0u)
            << text(result);
        first = text(result);
        passed.arrive_and_wait();
      } else {
        EXPECT_EQ(text(result), first) << count;
      }
      expect_usable(world);
    });
  }
}

// The same of what its caller gave up, and without any time between the two.
TEST(Outcomes, WhoeverComesAfterACancellationGetsTheVerdict) {
  Ranks ranks(2, impatient());
  for (int i = 0; i < 5; ++i) {
    std::latch passed(2);
    ranks.run([&](const Group& world) {
      std::int32_t data = 1;
      if (world.rank() == 0) {
        Operation started = world.start_all_reduce(&data, &data, 1, DataType::kI32, ReduceOp::kSum);
        std::this_thread::sleep_for(100ms);  // rank 1 is late
        started.cancel();
        EXPECT_EQ(started.wait().error().code(), ErrorCode::kCancelled);
        passed.arrive_and_wait();
      } else {
        passed.arrive_and_wait();
        const Result<void> result = world.all_reduce(&data, &data, 1, DataType::kI32, ReduceOp::kSum);
        EXPECT_FALSE(result) << "it has everything that it needs, but rank 0 has given it up";
        if (!result) {
          EXPECT_EQ(result.error().code(), ErrorCode::kCancelled) << result.error().to_string();
        }
      }
      expect_usable(world);
    });
  }
}

// What a rank sent before it left is there, and nobody is asked who cannot answer.
TEST(Outcomes, ALateRankGetsWhatALeaverHasSent) {
  Ranks ranks(2, impatient());
  std::latch left(2);
  ranks.run([&](const Group& world) {
    std::int32_t data = world.rank() == 0 ? 7 : 0;
    if (world.rank() == 0) {
      EXPECT_TRUE(world.broadcast(&data, 1, DataType::kI32, 0));
      EXPECT_TRUE(ranks.node(0).close());
      left.arrive_and_wait();
      return;
    }
    left.arrive_and_wait();
    std::this_thread::sleep_for(60ms);
    const Result<void> result = world.broadcast(&data, 1, DataType::kI32, 0);
    EXPECT_TRUE(result) << text(result);
    EXPECT_EQ(data, 7);
  });
}

TEST(Outcomes, AnEntryTimeoutNamesWhoIsMissing) {
  Config config = Config::from_env().value();
  config.entry_timeout = 400ms;
  config.progress_timeout = 60s;
  Ranks ranks(4, config);
  std::latch passed(4);
  ranks.run([&](const Group& world) {
    std::vector<std::int32_t> data(kLarge);
    if (world.rank() == 3) passed.arrive_and_wait();
    const Result<void> result = world.all_reduce(data.data(), data.data(), kLarge, DataType::kI32, ReduceOp::kSum);
    if (world.rank() != 3) passed.arrive_and_wait();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), ErrorCode::kTimeout);
    EXPECT_NE(text(result).find("within the entry_timeout of 400ms: not entered by rank 3; "), std::string::npos) << text(result);
    EXPECT_EQ(std::vector<Rank>(result.error().ranks().begin(), result.error().ranks().end()), std::vector<Rank>{3});
    expect_usable(world);
  });
}

TEST(Outcomes, AWaitThatIsGivenUpEndsTheOthers) {
  Ranks ranks(2, impatient());
  std::latch passed(2);
  ranks.run([&](const Group& world) {
    std::vector<std::int32_t> data(kLarge);
    if (world.rank() == 1) passed.arrive_and_wait();
    Operation started = world.start_all_reduce(data.data(), data.data(), kLarge, DataType::kI32, ReduceOp::kSum);
    const Result<Status> result = started.wait(world.rank() == 0 ? std::optional(Operation::Duration(50ms)) : std::nullopt);
    if (world.rank() == 0) passed.arrive_and_wait();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), ErrorCode::kTimeout);
    EXPECT_EQ(result.error().sentence(), "rank 0 waited for all_reduce(count=100000, i32, sum) no longer than 50ms");
    expect_usable(world);
  });
}

TEST(Outcomes, AUserOpThatThrowsEndsEverybody) {
  Ranks ranks(3, impatient());
  ranks.run([](const Group& world) {
    const UserOp throws{"throws", [](const void*, const void*, void*, std::size_t, DataType) { throw std::runtime_error("no"); }};
    for (const std::uint64_t count : {std::uint64_t{4}, kLarge}) {
      std::vector<std::int32_t> data(count);
      const Result<void> result = world.all_reduce(data.data(), data.data(), count, DataType::kI32, throws);
      ASSERT_FALSE(result);
      EXPECT_NE(text(result).find("user op throws threw: no"), std::string::npos) << text(result);
      expect_usable(world);
    }
  });
}

TEST(Outcomes, ARankThatLeavesIsNamed) {
  Ranks ranks(3, impatient());
  std::latch in(2);
  ranks.run([&](const Group& world) {
    if (world.rank() == 2) {
      in.wait();
      EXPECT_TRUE(ranks.node(2).close());
      return;
    }
    Operation barrier = world.start_barrier();
    in.count_down();
    const Result<Status> result = barrier.wait();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), ErrorCode::kPeerLost) << result.error().to_string();
    EXPECT_EQ(std::vector<Rank>(result.error().ranks().begin(), result.error().ranks().end()), std::vector<Rank>{2});
  });
}

// Operations are dropped at whatever moment, small and large ones: everybody has success or the verdict, and the next one is right.
TEST(Outcomes, DroppedAtAnyMomentTheGroupStaysUsable) {
  Ranks ranks(3, impatient());
  ranks.run([](const Group& world) {
    std::vector<std::int32_t> data(kLarge);
    for (int i = 0; i < 60; ++i) {
      const std::uint64_t count = i % 3 == 0 ? 5 : kLarge;
      Operation started = world.start_all_reduce(data.data(), data.data(), count, DataType::kI32, ReduceOp::kMax);
      if (world.rank() == i % 3) {
        std::this_thread::sleep_for(std::chrono::microseconds(i * 37 % 1000));
        started.cancel();
      }
      const Result<Status> result = started.wait();
      if (!result) {
        EXPECT_EQ(result.error().code(), ErrorCode::kCancelled) << result.error().to_string();
      }
      expect_usable(world);
    }
  });
}

}  // namespace
}  // namespace nexar::test
