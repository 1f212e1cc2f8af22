// Ranks that really run at once: a thread for each, blocking, stepping, or now this and now that.
#include <atomic>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "cases.h"
#include "collective/direct/owner.h"
#include "direct_world.h"

namespace nexar::test {
namespace {

using collective::direct::Call;
using collective::direct::Operation;
using collective::direct::Outcome;
using collective::direct::Owner;

// The same calls on every rank, of every kind and of sizes on both sides of every limit.
std::vector<Case> mixed_cases(Rank ranks, std::size_t how_many, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  constexpr std::uint64_t kCounts[] = {0, 1, 2, 12, 13, 600, 5'000, 20'000};
  std::vector<Case> cases;
  while (cases.size() < how_many) {
    Case what;
    what.operation = kDirectOperations[random() % std::size(kDirectOperations)];
    what.count = kCounts[random() % std::size(kCounts)] / (random() % 2 == 0 ? 1 : static_cast<std::uint64_t>(ranks));
    what.type = random() % 2 == 0 ? DataType::kI32 : DataType::kBf16;
    what.ranks = ranks;
    what.root = has_root(what.operation) ? static_cast<Rank>(random() % static_cast<std::uint64_t>(ranks)) : 0;
    what.in_place = what.operation != OperationId::kAllToAll && random() % 2 == 0;
    cases.push_back(what);
  }
  return cases;
}

std::deque<CaseMemory> memory_of(const std::vector<Case>& cases) {
  std::deque<CaseMemory> memory;
  for (std::size_t i = 0; i < cases.size(); ++i) memory.emplace_back(cases[i], i);
  return memory;
}

// Ranks know how fast they are, and share out reductions by that.
class Threads : public testing::TestWithParam<Rank> {
 protected:
  SteppingClocks clocks_{GetParam()};
  DirectWorld world_{GetParam(), 1, collective::direct::kSlotBytesMin, {}, {.one_stage = 2'000, .shares_by_pace = 2'000}, clocks_.all()};
};

TEST_P(Threads, BlockingCallsOfEveryKindFollowEachOther) {
  const auto cases = mixed_cases(GetParam(), 60, 1);
  const auto memory = memory_of(cases);
  world_.run([&](Rank rank) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Call call = memory[i].call(rank, i + 1);
      ASSERT_EQ(run_blocking(world_.area(rank), call), Outcome::kDone) << cases[i].to_text();
    }
  });
  for (const CaseMemory& one : memory)
    for (Rank rank = 0; rank < GetParam(); ++rank) ASSERT_EQ(one.wrong_at(rank), "");
}

// A rank has two threads, a caller and an engine: the caller runs a call itself or gives it to the engine, and does the former only when
// the engine has nothing of its own; peers cannot tell.
TEST_P(Threads, CallersAndEnginesTakeTurns) {
  const auto cases = mixed_cases(GetParam(), 60, 2);
  const auto memory = memory_of(cases);
  std::deque<Owner> owners(static_cast<std::size_t>(GetParam()));
  world_.run([&](Rank rank) {
    Owner& owner = owners[static_cast<std::size_t>(rank)];
    std::atomic<std::size_t> given = 0;
    std::vector<std::size_t> queue(cases.size());
    std::atomic<bool> over = false;
    std::thread engine([&] {
      for (std::size_t taken = 0;;) {
        const bool last = over.load();
        if (taken == given.load()) {
          if (last) return;
          std::this_thread::yield();
          continue;
        }
        const std::size_t i = queue[taken++];
        const Call call = memory[i].call(rank, i + 1);
        Operation operation(world_.area(rank), call);
        while (operation.step() == Outcome::kWaiting) std::this_thread::yield();
        EXPECT_EQ(operation.step(), Outcome::kDone) << cases[i].to_text();
        owner.remove_reason();
      }
    });
    std::mt19937_64 random(static_cast<std::uint64_t>(rank));
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (random() % 4 != 0 && owner.is_caller()) {
        EXPECT_EQ(run_blocking(world_.area(rank), memory[i].call(rank, i + 1)), Outcome::kDone) << cases[i].to_text();
        continue;
      }
      owner.add_reason();
      queue[given.load()] = i;
      given.fetch_add(1);
      while (random() % 2 == 0 && !owner.is_caller()) std::this_thread::yield();
    }
    over = true;
    engine.join();
  });
  for (const CaseMemory& one : memory)
    for (Rank rank = 0; rank < GetParam(); ++rank) ASSERT_EQ(one.wrong_at(rank), "");
}

INSTANTIATE_TEST_SUITE_P(Ranks, Threads, testing::Values(1, 2, 3, 4, 8));

// Positions are 40 bits of sequence number: calls go on across the end of that.
TEST(Positions, CallsGoOnWhereTheNumbersWrap) {
  constexpr Rank kRanks = 3;
  const auto cases = mixed_cases(kRanks, 40, 3);
  const auto memory = memory_of(cases);
  const Sequence first = (Sequence{1} << 40) - 20;
  DirectWorld world(kRanks, first);
  world.run([&](Rank rank) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Call call = memory[i].call(rank, first + i);
      ASSERT_EQ(run_blocking(world.area(rank), call), Outcome::kDone) << cases[i].to_text();
    }
  });
  for (const CaseMemory& one : memory)
    for (Rank rank = 0; rank < kRanks; ++rank) ASSERT_EQ(one.wrong_at(rank), "");
}

// Between two calls the group did others that ran otherwise; also so many that old words would look like later ones, if nobody had
// brought them up to date. A root may be two broadcasts ahead of who reads them, so that one step is far less than half the numbers.
TEST(Positions, SequenceNumbersMayBeLeftOut) {
  constexpr Rank kRanks = 3;
  const Case what{OperationId::kBroadcast, DataType::kI32, ReduceOp::kSum, 1'000, kRanks, 0, false};
  const Case sum{OperationId::kAllReduce, DataType::kI32, ReduceOp::kSum, 1'000, kRanks, 0, false};
  std::vector<Case> cases(16, what);  // until three quarters of the numbers have passed
  cases.insert(cases.end(), {sum, what, sum, sum});
  const auto memory = memory_of(cases);
  std::vector<Sequence> sequences{1, 3, 5, 7, 4'711};
  while (sequences.size() < cases.size()) sequences.push_back(sequences.back() + (Sequence{1} << 36) + 38 + sequences.size() % 3);
  DirectWorld world(kRanks);
  world.run([&](Rank rank) {
    for (std::size_t i = 0; i < memory.size(); ++i) {
      const Call call = memory[i].call(rank, sequences[i]);
      ASSERT_EQ(run_blocking(world.area(rank), call), Outcome::kDone) << i;
    }
  });
  for (const CaseMemory& one : memory)
    for (Rank rank = 0; rank < kRanks; ++rank) ASSERT_EQ(one.wrong_at(rank), "");
}

}  // namespace
}  // namespace nexar::test
