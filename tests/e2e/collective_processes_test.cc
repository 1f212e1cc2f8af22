// Collectives between real processes: right results, and what the others are told when one is killed or stopped in the middle.
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "collective_calls.h"
#include "nexar/node.h"
#include "processes.h"

namespace nexar::test {
namespace {

using namespace std::chrono_literals;

std::string verdict(const Result<void>& result) {
  if (result) return "success";
  return fmt::format("{} {}", to_string(result.error().code()), fmt::join(result.error().ranks(), ","));
}

Result<void> sum(const Group& group, std::vector<std::int32_t>& data) {
  return group.all_reduce(data.data(), data.data(), data.size(), DataType::kI32, ReduceOp::kSum);
}

TEST(CollectiveProcesses, GetWhatASerialProgramGives) {
  constexpr int kRanks = 3;
  Config config;
  config.log = LogLevel::kOff;
  Processes ranks(kRanks, config, [](Node& node, const Wire& wire) {
    for (const std::uint64_t count : {0, 1, 1000, 70'001}) {
      reductions<float>(node.world(), count, ReduceOp::kSum);
      reductions<bf16>(node.world(), count, ReduceOp::kMax);
      movements<std::int64_t>(node.world(), count);
      uneven_movements<std::uint8_t>(node.world(), count);
    }
    byte_strings(node.world());
    wire.say(testing::Test::HasFailure() ? "wrong" : "right");
    if (auto closed = node.close(); !closed) wire.say(closed.error().to_string());
  });
  for (Rank rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(ranks.hear(rank), "right") << rank;
    EXPECT_EQ(ranks.hear(rank), "") << rank;
    EXPECT_EQ(ranks.wait(rank), 0) << rank;
  }
}

TEST(CollectiveProcesses, ThatAreKilledAreNamedByAllOthers) {
  constexpr int kRanks = 4;
  Config config;
  config.heartbeat_interval = 100ms;
  config.heartbeat_timeout = 1s;
  config.log = LogLevel::kOff;
  Processes ranks(kRanks, config, [](Node& node, const Wire& wire) {
    std::vector<std::int32_t> small(3);
    std::vector<std::int32_t> large(200'000);
    Result<void> result;
    for (int i = 0; result; ++i) {
      result = sum(node.world(), i % 2 == 0 ? small : large);
      if (i == 20) wire.say("runs");
    }
    wire.say(verdict(result));
    wire.say(verdict(node.world().barrier()));
    wire.hear();
  });
  for (Rank rank = 0; rank < kRanks; ++rank) ASSERT_EQ(ranks.hear(rank), "runs");
  ranks.signal(2, SIGKILL);
  for (const Rank rank : {0, 1, 3}) {
    EXPECT_EQ(ranks.hear(rank), "peer_lost 2") << rank;
    EXPECT_EQ(ranks.hear(rank), "peer_lost 2") << rank;
  }
}

// Where ranks share memory a death is noticed by the end of a socket, in the middle of whatever they do: a detector that took ten minutes
// could not be what noticed it.
void kill_in_a_loop(int rounds) {
  constexpr int kRanks = 3;
  Config config;
  config.transport = Transport::kShm;
  config.heartbeat_timeout = 10min;
  config.log = LogLevel::kOff;
  for (int round = 0; round < rounds; ++round) {
    Processes ranks(kRanks, config, [](Node& node, const Wire& wire) {
      const Group world = node.world();
      std::vector<std::int32_t> small(3);
      std::vector<std::int32_t> large(150'000);
      std::vector<std::int32_t> all(small.size() * kRanks);
      Result<void> result;
      for (int i = 0; result; ++i) {
        if (i == 5) wire.say(world.shares_memory() ? "runs" : "shares no memory");
        if (i % 4 == 0) result = sum(world, large);
        if (i % 4 == 1) result = world.all_gather(small.data(), all.data(), small.size(), DataType::kI32);
        if (i % 4 == 2) result = world.broadcast(large.data(), large.size(), DataType::kI32, i % kRanks);
        if (i % 4 == 3) result = sum(world, small);
      }
      wire.say(verdict(result));
      wire.say(verdict(world.barrier()));
      wire.hear();
    });
    for (Rank rank = 0; rank < kRanks; ++rank) ASSERT_EQ(ranks.hear(rank), "runs");
    const Rank victim = round % kRanks;
    std::this_thread::sleep_for(std::chrono::microseconds(137 * (round % 50)));  // at another point each time
    ranks.signal(victim, SIGKILL);
    for (Rank rank = 0; rank < kRanks; ++rank) {
      if (rank == victim) continue;
      ASSERT_EQ(ranks.hear(rank), fmt::format("peer_lost {}", victim)) << "round " << round << ", rank " << rank;
      ASSERT_EQ(ranks.hear(rank), fmt::format("peer_lost {}", victim)) << "round " << round << ", rank " << rank;
    }
  }
}

TEST(CollectiveProcesses, ThatShareMemoryMissAKilledOneAtOnce) { kill_in_a_loop(20); }
TEST(CollectiveProcessesLong, ThatShareMemoryMissAKilledOneAtOnce) { kill_in_a_loop(200); }

// Alive for its peers, who give it a minute, but it does not move: that is what the progress timeout is for. When it goes on, it learns how
// the others ended, and all go on together.
TEST(CollectiveProcesses, ThatAreStoppedHoldNobodyUpForEver) {
  constexpr int kRanks = 3;
  Config config;
  config.heartbeat_timeout = 60s;
  config.progress_timeout = 1s;
  config.log = LogLevel::kOff;
  Processes ranks(kRanks, config, [](Node& node, const Wire& wire) {
    std::vector<std::int32_t> data(200'000, 1);
    const Group world = node.world();
    if (node.rank() == 0) wire.hear();
    Operation started = world.start_all_reduce(data.data(), data.data(), data.size(), DataType::kI32, ReduceOp::kSum);
    wire.say("started");
    const Result<Status> result = started.wait();
    wire.say(result ? "success" : verdict(result.error()));
    std::vector<std::int32_t> next(2, 1);
    wire.say(verdict(sum(world, next)));
    wire.say(next == std::vector<std::int32_t>(2, 3) ? "right" : "wrong");
    wire.hear();
  });
  for (const Rank rank : {1, 2}) ASSERT_EQ(ranks.hear(rank), "started");
  ranks.signal(2, SIGSTOP);
  ranks.say(0, "go");
  ASSERT_EQ(ranks.hear(0), "started");
  for (const Rank rank : {0, 1}) EXPECT_EQ(ranks.hear(rank), "timeout 2") << rank;
  ranks.signal(2, SIGCONT);
  EXPECT_EQ(ranks.hear(2), "timeout 2");
  for (Rank rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(ranks.hear(rank), "success") << rank;
    EXPECT_EQ(ranks.hear(rank), "right") << rank;
  }
}

}  // namespace
}  // namespace nexar::test
