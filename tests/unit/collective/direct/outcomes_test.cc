// How calls end when not everybody calls the same, or not to the end.
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <random>

#include <gtest/gtest.h>

#include "cases.h"
#include "direct_world.h"

namespace nexar::test {
namespace {

using collective::direct::Call;
using collective::direct::Header;
using collective::direct::Operation;
using collective::direct::Outcome;

// Steps in turn until all are over.
void step_all(std::vector<std::unique_ptr<Operation>>& operations) {
  for (int steps = 0; steps < 1'000'000; ++steps) {
    bool waiting = false;
    for (auto& operation : operations) waiting |= operation->step() == Outcome::kWaiting;
    if (!waiting) return;
  }
  FAIL() << "the calls do not end";
}

void expect_sum_works(DirectWorld& world, Sequence sequence) {
  const Case sum{OperationId::kAllReduce, DataType::kI64, ReduceOp::kSum, 5'000, world.ranks(), 0, true};
  const CaseMemory memory(sum, sequence);
  std::vector<Call> calls;
  for (Rank rank = 0; rank < world.ranks(); ++rank) calls.push_back(memory.call(rank, sequence));
  std::vector<std::unique_ptr<Operation>> operations;
  for (Rank rank = 0; rank < world.ranks(); ++rank)
    operations.push_back(std::make_unique<Operation>(world.area(rank), calls[static_cast<std::size_t>(rank)]));
  step_all(operations);
  for (Rank rank = 0; rank < world.ranks(); ++rank) ASSERT_EQ(memory.wrong_at(rank), "");
}

// Rank 2 of three calls something else than ranks 0 and 1; everybody learns who and what.
void expect_mismatch(const Case& most, const Case& other) {
  SCOPED_TRACE(most.to_text() + " against " + other.to_text());
  DirectWorld world(3);
  const CaseMemory memory(most, 1);
  const CaseMemory other_memory(other, 2);
  const std::vector<Call> calls{memory.call(0, 1), memory.call(1, 1), other_memory.call(2, 1)};
  std::vector<std::unique_ptr<Operation>> operations;
  for (Rank rank = 0; rank < 3; ++rank)
    operations.push_back(std::make_unique<Operation>(world.area(rank), calls[static_cast<std::size_t>(rank)]));
  step_all(operations);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    ASSERT_EQ(operations[rank]->step(), Outcome::kMismatch) << "rank " << rank;
    const auto found = operations[rank]->mismatch();
    EXPECT_EQ(found.theirs, calls[static_cast<std::size_t>(found.rank)].fingerprint);
    EXPECT_NE(found.theirs, calls[rank].fingerprint);
  }
  expect_sum_works(world, 2);
}

TEST(Outcomes, AMismatchIsSeenByEverybodyBeforeAByteIsUsed) {
  const Case tiny{OperationId::kAllReduce, DataType::kF32, ReduceOp::kSum, 2, 3, 0, true};
  Case other = tiny;
  other.count = 3;
  expect_mismatch(tiny, other);
  other.count = 1'000;
  expect_mismatch(tiny, other);
  other.count = 100'000;
  expect_mismatch(tiny, other);
  Case large = other;
  large.type = DataType::kI32;
  expect_mismatch(large, other);
  other.operation = OperationId::kBarrier;
  expect_mismatch(large, other);
  other.operation = OperationId::kAllToAll;
  other.in_place = false;
  expect_mismatch(large, other);
}

TEST(Outcomes, AMismatchIsSeenWhereNobodyWouldSendAnything) {
  DirectWorld world(2);
  Case what{OperationId::kBroadcast, DataType::kF32, ReduceOp::kSum, 10, 2, 1, false};
  const CaseMemory from_one(what, 1);
  what.root = 0;
  const CaseMemory from_zero(what, 1);
  const std::vector<Call> calls{from_one.call(0, 1), from_zero.call(1, 1)};  // each takes the other for the root
  std::vector<std::unique_ptr<Operation>> operations;
  for (Rank rank = 0; rank < 2; ++rank)
    operations.push_back(std::make_unique<Operation>(world.area(rank), calls[static_cast<std::size_t>(rank)]));
  step_all(operations);
  for (auto& operation : operations) EXPECT_EQ(operation->step(), Outcome::kMismatch);
  expect_sum_works(world, 2);
}

TEST(Outcomes, WhoeverWaitsForARankThatLeftTheCallOutIsTold) {
  DirectWorld world(3);
  const Case what{OperationId::kAllReduce, DataType::kF32, ReduceOp::kSum, 10, 3, 0, true};
  const CaseMemory memory(what, 1);
  const std::vector<Call> calls{memory.call(0, 1), memory.call(2, 1)};
  std::vector<std::unique_ptr<Operation>> operations;
  operations.push_back(std::make_unique<Operation>(world.area(0), calls[0]));
  operations.push_back(std::make_unique<Operation>(world.area(2), calls[1]));
  for (auto& operation : operations) EXPECT_EQ(operation->step(), Outcome::kWaiting);
  world.area(1).fail(1);  // its arguments were wrong
  step_all(operations);
  for (auto& operation : operations) EXPECT_EQ(operation->step(), Outcome::kEnded);
  EXPECT_EQ(operations[0]->blocked_on(), 1);
  expect_sum_works(world, 2);
}

TEST(Outcomes, AStoppedCallEndsAsItWasToldAndALateRankLearnsIt) {
  for (const Outcome why : {Outcome::kRevoked, Outcome::kDeadline, Outcome::kCancelled}) {
    DirectWorld world(2);
    const Case what{OperationId::kAllReduce, DataType::kF32, ReduceOp::kSum, 100'000, 2, 0, true};
    const CaseMemory memory(what, 1);
    const Call early = memory.call(0, 1);
    class Stops : public collective::direct::Patience {
     public:
      explicit Stops(Outcome why) : why_(why) {}
      Outcome look(std::uint64_t looks) override { return looks < 3 ? Outcome::kWaiting : why_; }

     private:
      Outcome why_;
    } patience(why);
    Operation operation(world.area(0), early);
    EXPECT_EQ(collective::direct::run(operation, patience, kPoliteSpin), why);
    EXPECT_EQ(operation.blocked_on(), 1);
    const Call late = memory.call(1, 1);
    EXPECT_EQ(run_blocking(world.area(1), late), Outcome::kEnded);
    expect_sum_works(world, 2);
  }
}

// Each rank walks through the same calls at its own pace, in a random order of steps, and now and then gives one up in the middle. Whoever
// succeeds has the right result, nobody waits for ever, and what a slow rank still reads is not overwritten by the next call.
class GivingUp : public testing::TestWithParam<Rank> {};

TEST_P(GivingUp, NeverSpoilsAnotherCallOrAnotherRank) {
  const Rank ranks = GetParam();
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    DirectWorld world(ranks, 1, collective::direct::kSlotBytesMin, {},
                      {.one_stage_two_ranks = 300, .one_stage = 300, .stream_in = 2'000, .stream_out = 30'000});
    std::deque<CaseMemory> memory;
    for (std::size_t i = 0; i < 40; ++i) {
      const OperationId operation = kDirectOperations[random() % std::size(kDirectOperations)];
      const std::uint64_t count = std::array<std::uint64_t, 4>{1, 70, 2'000, 9'000}[random() % 4];
      const Rank root = has_root(operation) ? static_cast<Rank>(random() % static_cast<std::uint64_t>(ranks)) : 0;
      memory.emplace_back(Case{operation, DataType::kI32, ReduceOp::kSum, count, ranks, root, false}, random());
    }
    struct Walk {
      std::size_t at = 0;
      Call call{};
      std::unique_ptr<Operation> operation{};
    };
    std::vector<Walk> walks(static_cast<std::size_t>(ranks));
    std::size_t finished = 0;
    for (std::uint64_t steps = 0; finished < walks.size(); ++steps) {
      ASSERT_LT(steps, 10'000'000) << "the calls do not end";
      // A rank is favoured for a while, so that some run far ahead.
      const auto rank = static_cast<Rank>((random() % 8 == 0 ? random() : steps / 500) % walks.size());
      Walk& walk = walks[static_cast<std::size_t>(rank)];
      if (walk.at == memory.size()) continue;
      if (walk.operation == nullptr) {
        walk.call = memory[walk.at].call(rank, walk.at + 1);
        walk.operation = std::make_unique<Operation>(world.area(rank), walk.call);
      }
      Outcome outcome = walk.operation->step();
      if (outcome == Outcome::kWaiting && random() % 2'000 == 0) outcome = walk.operation->stop(Outcome::kCancelled);
      if (outcome == Outcome::kWaiting) continue;
      if (outcome == Outcome::kDone) {
        ASSERT_EQ(memory[walk.at].wrong_at(rank), "") << "call " << walk.at;
      } else {
        ASSERT_TRUE(outcome == Outcome::kCancelled || outcome == Outcome::kEnded) << static_cast<int>(outcome);
      }
      walk.operation.reset();
      finished += ++walk.at == memory.size() ? 1 : 0;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, GivingUp, testing::Values(2, 3, 5));

// A peer may write anything into its own part. The worst that follows is a call that does not succeed or has wrong values.
TEST(Outcomes, NonsenseInAPeersWordsHarmsNobody) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    DirectWorld world(2);
    const Case what{OperationId::kAllReduce, DataType::kF32, ReduceOp::kSum, round % 2 == 0 ? 3U : 9'000U, 2, 0, true};
    const CaseMemory memory(what, 1);
    const Call call = memory.call(0, 1);
    Operation operation(world.area(0), call);
    for (int steps = 0; steps < 300 && operation.step() == Outcome::kWaiting; ++steps) {
      Header& header = world.layout().header(world.memory(), 1, static_cast<unsigned>(random() % 2));
      auto& progress = world.layout().progress(world.memory(), 1);
      const std::uint64_t word = random() % 2 == 0 ? random() : collective::direct::position(1, random() % 3);
      switch (random() % 6) {
        case 0: header.position.store(word); break;
        case 1: header.fingerprint.store(random() % 2 == 0 ? word : call.fingerprint); break;
        case 2: std::memcpy(header.payload + random() % 5 * 8, &word, sizeof word); break;
        case 3: header.with_body.reduced.store(word); break;
        case 4: header.with_body.pace.store(word); break;
        default: progress.left.store(word); break;
      }
    }
    operation.stop(Outcome::kRevoked);
  }
}

TEST(Outcomes, ALoanThatNobodyCanFindIsNonsense) {
  DirectWorld world(2);
  const Case what{OperationId::kAllReduce, DataType::kF32, ReduceOp::kSum, 9'000, 2, 0, true};
  const CaseMemory memory(what, 1);
  const std::vector<Call> calls{memory.call(0, 1), memory.call(1, 1)};
  Operation victim(world.area(0), calls[0]);
  EXPECT_EQ(victim.step(), Outcome::kWaiting);
  Operation liar(world.area(1), calls[1]);
  EXPECT_EQ(liar.step(), Outcome::kWaiting);
  const collective::direct::Loan loan{{1, 3, 1'000'000}, {}};
  for (unsigned slot : {0U, 1U}) world.area(1).header(1, slot).with_body.loan = loan;
  EXPECT_EQ(victim.step(), Outcome::kNonsense);
  EXPECT_EQ(victim.blocked_on(), 1);
}

}  // namespace
}  // namespace nexar::test
