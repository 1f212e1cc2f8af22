// Calls on memory that peers read in place.
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cases.h"
#include "collective/direct/windows.h"
#include "direct_world.h"

namespace nexar::test {
namespace {

using collective::direct::Call;
using collective::direct::GroupWindows;
using collective::direct::Operation;
using collective::direct::Outcome;
using collective::direct::Windows;

constexpr collective::direct::Tuning kLendsEarly{.lend = 16'384};

// Each rank's memory, and windows on it in all the others. Threads see each other's memory at its own address.
class LentWorld {
 public:
  // `lenders` has a bit for each rank that lends; the others' memory is private.
  LentWorld(Rank ranks, std::size_t bytes, unsigned lenders) : windows_(static_cast<std::size_t>(ranks)) {
    for (Rank rank = 0; rank < ranks; ++rank) {
      memory_.push_back(std::make_shared<std::uint8_t[]>(bytes));
      if ((lenders >> rank & 1) == 0) continue;
      const base::ByteView view(reinterpret_cast<const std::byte*>(memory_.back().get()), bytes);
      const auto buffer = static_cast<std::uint32_t>(100 + rank);
      for (Rank other = 0; other < ranks; ++other) {
        Windows& windows = windows_[static_cast<std::size_t>(other)];
        EXPECT_TRUE(other == rank ? windows.add_own(buffer, view, memory_.back())
                                  : windows.add_peer(local(rank), buffer, view, memory_.back()));
        if (other != rank) windows_[static_cast<std::size_t>(rank)].set_mapped(buffer, local(other));
      }
    }
    std::vector<const collective::direct::Lending*> lending;
    std::vector<int> locals;
    for (Rank rank = 0; rank < ranks; ++rank) locals.push_back(local(rank));
    for (Rank rank = 0; rank < ranks; ++rank)
      lending.push_back(&groups_.emplace_back(windows_[static_cast<std::size_t>(rank)], locals, rank));
    world_ = std::make_unique<DirectWorld>(ranks, 1, collective::direct::kSlotBytesMin, lending, kLendsEarly);
  }

  DirectWorld& world() { return *world_; }
  std::uint8_t* memory(Rank rank) { return memory_[static_cast<std::size_t>(rank)].get(); }

 private:
  // Ranks of a group may be any ranks of the host, in any order.
  static int local(Rank rank) { return 20 - 3 * rank; }

  std::deque<Windows> windows_;
  std::deque<GroupWindows> groups_;
  std::vector<std::shared_ptr<std::uint8_t[]>> memory_;
  std::unique_ptr<DirectWorld> world_;
};

class LendingRanks : public testing::TestWithParam<Rank> {};

TEST_P(LendingRanks, EveryKernelGivesTheSameWhoeverLends) {
  const Rank ranks = GetParam();
  std::mt19937_64 random(1);
  for (const OperationId operation : kDirectOperations)
    for (const bool in_place : {false, true}) {
      if (in_place && operation == OperationId::kAllToAll) continue;
      const Rank root = has_root(operation) ? static_cast<Rank>(random() % static_cast<std::uint64_t>(ranks)) : 0;
      const Case what{operation, DataType::kI32, ReduceOp::kSum, 9'001, ranks, root, in_place};
      CaseMemory memory(what, random());
      LentWorld lent(ranks, memory.bytes_of_rank(), static_cast<unsigned>(random()) | 1);
      for (Rank rank = 0; rank < ranks; ++rank) memory.place(rank, lent.memory(rank));
      lent.world().run([&](Rank rank) {
        const Call call = memory.call(rank, 1);
        ASSERT_EQ(run_blocking(lent.world().area(rank), call), Outcome::kDone) << what.to_text();
      });
      for (Rank rank = 0; rank < ranks; ++rank) ASSERT_EQ(memory.wrong_at(rank), "");
    }
}

INSTANTIATE_TEST_SUITE_P(Ranks, LendingRanks, testing::Values(2, 3, 5));

// A rank gives up a call in which it has lent memory, waits as it must, and then uses the memory for something else. Whoever succeeds has
// not seen that.
TEST(Lending, MemoryComesBackOnlyWhenNobodyReadsItAnyMore) {
  constexpr Rank kRanks = 3;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const OperationId operation = std::array{OperationId::kAllReduce, OperationId::kAllGather, OperationId::kBroadcast}[seed % 3];
    const Case what{operation, DataType::kI32, ReduceOp::kSum, 10'000, kRanks, 0, false};
    CaseMemory memory(what, seed);
    LentWorld lent(kRanks, memory.bytes_of_rank(), 0b111);
    for (Rank rank = 0; rank < kRanks; ++rank) memory.place(rank, lent.memory(rank));
    std::vector<Call> calls;
    for (Rank rank = 0; rank < kRanks; ++rank) calls.push_back(memory.call(rank, 1));
    std::vector<std::unique_ptr<Operation>> operations(kRanks);
    bool reused = false;
    std::uint64_t patience = random() % 40;
    for (int steps = 0; steps < 20'000; ++steps) {
      const auto rank = static_cast<std::size_t>(random() % kRanks);
      if (operations[rank] == nullptr)
        operations[rank] = std::make_unique<Operation>(lent.world().area(static_cast<Rank>(rank)), calls[rank]);
      const bool gave_up = rank == 0 && patience == 0;
      if (gave_up) operations[0]->stop(Outcome::kCancelled);
      if (rank == 0 && patience > 0) --patience;
      const Outcome outcome = operations[rank]->step();
      if (gave_up && outcome == Outcome::kCancelled && !reused) {
        bool all_left = true;
        for (Rank other = 0; other < kRanks; ++other) all_left &= lent.world().area(0).has_left(other, 1);
        if (all_left || !operations[0]->has_lent()) {
          std::memset(lent.memory(0), 0x77, memory.bytes_of_rank());
          reused = true;
        }
      }
    }
    for (Rank rank = 0; rank < kRanks; ++rank) {
      const Outcome outcome = operations[static_cast<std::size_t>(rank)]->step();
      ASSERT_NE(outcome, Outcome::kWaiting);
      if (outcome == Outcome::kDone) {
        EXPECT_EQ(memory.wrong_at(rank), "");
      }
      if (rank == 0 && outcome == Outcome::kCancelled) {
        EXPECT_TRUE(reused);
      }
    }
  }
}

// Between two ranks what is lent is reduced in two stages and what is not in one: they find out which it is before they begin, whoever
// comes first. Calls before and after leave nothing behind.
TEST(Lending, RanksAgreeWhetherAnybodyLends) {
  constexpr Rank kRanks = 2;
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    LentWorld lent(kRanks, 1 << 20, 0b11);
    for (Sequence sequence = 1; sequence <= 6; ++sequence) {
      const OperationId operation = random() % 3 == 0 ? OperationId::kReduce : OperationId::kAllReduce;
      const std::uint64_t count = random() % 4 == 0 ? 100 : 20'000;
      const Case what{
          operation,        DataType::kI32, ReduceOp::kSum, count, kRanks, static_cast<Rank>(random() % 2) * has_root(operation),
          random() % 2 == 0};
      CaseMemory memory(what, random());
      std::vector<std::unique_ptr<std::uint8_t[]>> own;
      for (Rank rank = 0; rank < kRanks; ++rank) {
        own.push_back(std::make_unique<std::uint8_t[]>(memory.bytes_of_rank()));
        memory.place(rank, random() % 2 == 0 ? lent.memory(rank) : own.back().get());
      }
      std::vector<Call> calls;
      for (Rank rank = 0; rank < kRanks; ++rank) calls.push_back(memory.call(rank, sequence));
      std::vector<std::unique_ptr<Operation>> operations(kRanks);
      std::vector<Outcome> outcomes(kRanks, Outcome::kWaiting);
      const auto is_over = [](Outcome outcome) { return outcome != Outcome::kWaiting; };
      for (int steps = 0; steps < 20'000 && !std::all_of(outcomes.begin(), outcomes.end(), is_over); ++steps) {
        const auto rank = static_cast<std::size_t>(random() % kRanks);
        if (operations[rank] == nullptr)
          operations[rank] = std::make_unique<Operation>(lent.world().area(static_cast<Rank>(rank)), calls[rank]);
        outcomes[rank] = operations[rank]->step();
      }
      for (Rank rank = 0; rank < kRanks; ++rank) {
        ASSERT_EQ(outcomes[static_cast<std::size_t>(rank)], Outcome::kDone) << what.to_text();
        ASSERT_EQ(memory.wrong_at(rank), "") << what.to_text();
      }
    }
  }
}

// Rank 1 is done and gives up the next call, while rank 2 has still to read what rank 0 lends.
TEST(Lending, WhoGivesUpALaterCallHasNotSpoiltThisOne) {
  constexpr Rank kRanks = 3;
  const Case what{OperationId::kAllGather, DataType::kI32, ReduceOp::kSum, 5'000, kRanks, 0, false};
  CaseMemory memory(what, 1);
  LentWorld lent(kRanks, memory.bytes_of_rank(), 0b001);
  for (Rank rank = 0; rank < kRanks; ++rank) memory.place(rank, lent.memory(rank));
  const Call calls[] = {memory.call(0, 1), memory.call(1, 1), memory.call(2, 1)};
  Operation zero(lent.world().area(0), calls[0]);
  Operation one(lent.world().area(1), calls[1]);
  Operation two(lent.world().area(2), calls[2]);
  EXPECT_EQ(two.step(), Outcome::kWaiting);  // it has published everything, and takes nothing yet
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(zero.step(), Outcome::kWaiting) << "it has lent memory that rank 2 has not read";
    one.step();
  }
  ASSERT_EQ(one.step(), Outcome::kDone);
  lent.world().area(1).fail(2);
  for (int i = 0; i < 100; ++i) two.step();
  EXPECT_EQ(zero.step(), Outcome::kDone);
  EXPECT_EQ(two.step(), Outcome::kDone);
  for (Rank rank = 0; rank < kRanks; ++rank) EXPECT_EQ(memory.wrong_at(rank), "");
}

TEST(Windows, AnswerOnlyWhatLiesWholeInABuffer) {
  Windows windows;
  const auto owner = std::make_shared<std::vector<std::byte>>(100);
  const std::vector<std::byte>& memory = *owner;
  const std::vector<int> nobody;
  const std::vector<int> both = {1, 3};
  EXPECT_TRUE(windows.add_own(1, memory, owner));
  EXPECT_FALSE(windows.add_own(1, memory, owner));
  EXPECT_TRUE(windows.add_peer(3, 7, memory, owner));
  EXPECT_FALSE(windows.add_peer(3, 7, memory, owner));
  const auto found = windows.find(memory.data() + 10, 90, nobody);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->buffer, 1U);
  EXPECT_EQ(found->offset, 10U);
  EXPECT_FALSE(windows.find(memory.data() + 10, 91, nobody));
  EXPECT_FALSE(windows.find(memory.data() - 1, 1, nobody));
  windows.set_mapped(1, 3);
  EXPECT_FALSE(windows.find(memory.data(), 1, both));
  windows.set_mapped(1, 1);
  windows.set_mapped(1, 2);
  windows.set_mapped(4, 2);
  EXPECT_TRUE(windows.find(memory.data(), 1, both));
  EXPECT_EQ(windows.address(3, 7, 40, 60), memory.data() + 40);
  EXPECT_EQ(windows.address(3, 7, 40, 61), nullptr);
  EXPECT_EQ(windows.address(3, 7, ~std::uint64_t{0}, 2), nullptr);
  EXPECT_EQ(windows.address(2, 7, 0, 1), nullptr);
  windows.remove_peer(3, 7);
  EXPECT_EQ(windows.address(3, 7, 0, 1), nullptr);
  windows.remove_own(1);
  EXPECT_FALSE(windows.find(memory.data(), 1, nobody));
  for (std::uint32_t buffer = 0; buffer < Windows::kBuffersMax; ++buffer) EXPECT_TRUE(windows.add_own(buffer, memory, owner));
  EXPECT_FALSE(windows.add_own(Windows::kBuffersMax, memory, owner));
}

// Something else may lie there by then.
TEST(Windows, FindNothingInABufferThatHasBeenFreed) {
  Windows windows;
  auto owner = std::make_shared<std::vector<std::byte>>(100);
  const base::ByteView view = *owner;
  EXPECT_TRUE(windows.add_own(1, view, owner));
  EXPECT_TRUE(windows.find(view.data(), 100, {}));
  owner.reset();
  EXPECT_FALSE(windows.find(view.data(), 100, {}));
}

TEST(Windows, KeepMemoryUntilNobodyReadsIt) {
  Windows windows;
  auto mapping = std::make_shared<std::vector<std::byte>>(100);
  const std::weak_ptr<std::vector<std::byte>> watched = mapping;
  const base::ByteView view = *mapping;
  EXPECT_TRUE(windows.add_peer(1, 1, view, std::move(mapping)));
  windows.begin_reading();
  windows.begin_reading();
  windows.remove_peer(1);
  EXPECT_EQ(windows.peers(), 0U);
  windows.end_reading();
  EXPECT_FALSE(watched.expired());
  windows.end_reading();
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace nexar::test
