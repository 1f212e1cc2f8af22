// Who reduces how much.
#include "collective/direct/shares.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "collective/direct/pace.h"
#include "collective/direct/pattern.h"
#include "direct_world.h"
#include "reduce/reducer.h"

namespace nexar::test {
namespace {

using collective::direct::Call;
using collective::direct::kRanksMax;
using collective::direct::Layout;
using collective::direct::Outcome;
using collective::direct::Pace;
using collective::direct::PaceMeter;
using collective::direct::Part;
using collective::direct::Pattern;
using collective::direct::Shares;
using std::chrono::microseconds;

constexpr std::uint64_t kMiB = 1 << 20;

std::vector<std::uint64_t> counts_of(const Shares& shares, Rank ranks, std::uint64_t elements, std::uint64_t unit = 1) {
  std::vector<std::uint64_t> counts;
  std::uint64_t next = 0;
  for (Rank rank = 0; rank < ranks; ++rank) {
    const Part part = shares.of(rank, elements, unit);
    EXPECT_EQ(part.first, next) << "rank " << rank << " of " << ranks;
    if (rank + 1 < ranks) {
      EXPECT_EQ(part.count % unit, 0U);
    }
    next = part.first + part.count;
    counts.push_back(part.count);
  }
  EXPECT_EQ(next, elements);
  return counts;
}

TEST(Shares, AreEqualUntilToldOtherwise) {
  for (const Rank ranks : {1, 2, 3, 7, 16, 256})
    for (const std::uint64_t elements : {0U, 1U, 255U, 1'000U, 131'072U})
      for (const std::uint64_t unit : {1U, 16U, 64U}) {
        const auto counts = counts_of(Shares(ranks), ranks, elements, unit);
        const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
        EXPECT_LE(*most - *least, 2 * unit) << ranks << " ranks, " << elements << " elements";
      }
}

TEST(Shares, AreEqualWhereOneRanksPaceDoesNotCount) {
  const std::vector<std::uint64_t> equal{1'000, 1'000, 1'000, 1'000};
  const Pace slow{100, 4'000'000, true};
  const Pace fast{100, 1'000'000, true};
  Shares shares(4);
  EXPECT_FALSE(shares.go_by(std::vector<Pace>{fast, slow, {}, fast})) << "of one nothing is known";
  EXPECT_EQ(counts_of(shares, 4, 4'000), equal);
  EXPECT_TRUE(shares.go_by(std::vector<Pace>{fast, slow, {100, 1'000'000, false}, fast})) << "it would pay";
  EXPECT_EQ(counts_of(shares, 4, 4'000), equal);
  EXPECT_TRUE(shares.go_by(std::vector<Pace>{fast, slow, fast, fast}));
  EXPECT_NE(counts_of(shares, 4, 4'000), equal);
}

TEST(Shares, PayWhereRanksDiffer) {
  Shares shares(4);
  const Pace pace{200'000, 1'000'000, true};
  EXPECT_FALSE(shares.go_by(std::vector<Pace>{pace, pace, pace, pace}));
  EXPECT_FALSE(shares.go_by(std::vector<Pace>{pace, {206'000, 1'030'000, true}, pace, pace}));
  EXPECT_TRUE(shares.go_by(std::vector<Pace>{pace, {240'000, 1'200'000, true}, pace, pace}));
  EXPECT_FALSE(shares.go_by(std::vector<Pace>{pace, {9'000'000, 1'000'000, true}, pace, pace})) << "nobody can help it";
}

// The example of the header: everybody is done at the same time.
TEST(Shares, LetAllRanksBeDoneTogether) {
  const std::vector<Pace> paces{
      {200'000, 1'000'000, true}, {200'000, 1'000'000, true}, {340'000, 1'700'000, true}, {200'000, 1'000'000, true}};
  Shares shares(4);
  shares.go_by(paces);
  const auto counts = counts_of(shares, 4, kMiB);
  for (std::size_t rank = 0; rank < paces.size(); ++rank)
    EXPECT_NEAR(paces[rank].copies + static_cast<double>(counts[rank]) / kMiB * paces[rank].reductions, 501'600, 500) << rank;
}

// Whose copies alone take longer than all others need for everything.
TEST(Shares, LeaveTheSlowestALittle) {
  Shares shares(4);
  shares.go_by(
      std::vector<Pace>{{100'000, 1'000'000, true}, {10'000'000, 1'000'000, true}, {100'000, 1'000'000, true}, {100'000, 2'000'000, true}});
  const auto counts = counts_of(shares, 4, kMiB);
  EXPECT_NEAR(static_cast<double>(counts[1]), kMiB / 128.0, 1'000);
  EXPECT_NEAR(static_cast<double>(counts[0]), static_cast<double>(counts[2]), 10);
  EXPECT_NEAR(static_cast<double>(counts[0]), 2 * static_cast<double>(counts[3]), 1'000);
}

// Peers may tell anything: shares cover everything once, and nobody crashes.
TEST(Shares, CoverEverythingWhateverIsTold) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 3'000; ++round) {
    const Rank ranks = round % 8 == 0 ? kRanksMax : 1 + static_cast<Rank>(random() % 20);
    std::vector<Pace> paces;
    for (Rank rank = 0; rank < ranks; ++rank) {
      Pace pace = Pace::from_word(random() >> (random() % 4 == 0 ? 0 : random() % 64));
      if (round % 3 == 0) pace.reductions = random() % 2 == 0 ? 1 : INT32_MAX;
      if (round % 5 == 0) pace.copies = random() % 2 == 0 ? 0 : UINT32_MAX;
      if (round % 7 != 0) pace.reductions = std::max(pace.reductions, 1U);
      if (round % 11 != 0) pace.counts = true;
      EXPECT_EQ(Pace::from_word(pace.word()).word(), pace.word());
      paces.push_back(pace);
    }
    Shares shares(ranks);
    shares.go_by(paces);
    counts_of(shares, ranks, random() % 600'000, std::uint64_t{1} << random() % 7);
  }
}

// While shares may go by pace two rounds are copied whole: with few ranks and few rounds that is more than is gained.
TEST(Shares, GoByPaceInLargeReductionsOnly) {
  const auto go_by_pace = [](OperationId operation, Rank ranks, std::uint64_t bytes) {
    Call call;
    call.operation = operation;
    call.count = bytes / sizeof(float);
    call.type = DataType::kF32;
    call.op = ReduceOp::kSum;
    return Pattern(call, 0, Layout(ranks, collective::direct::kSlotBytes), {}).shares_by_pace;
  };
  EXPECT_TRUE(go_by_pace(OperationId::kAllReduce, 8, kMiB / 4));
  EXPECT_TRUE(go_by_pace(OperationId::kReduce, 16, 64 * kMiB));
  EXPECT_FALSE(go_by_pace(OperationId::kAllReduce, 8, kMiB / 4 - 64)) << "small";
  EXPECT_FALSE(go_by_pace(OperationId::kAllReduce, 4, kMiB)) << "an eighth in vain";
  EXPECT_TRUE(go_by_pace(OperationId::kAllReduce, 4, 2 * kMiB));
  EXPECT_FALSE(go_by_pace(OperationId::kAllReduce, 2, 16 * kMiB)) << "one stage";
  EXPECT_FALSE(go_by_pace(OperationId::kReduceScatter, 8, 16 * kMiB)) << "blocks are whose they are";
}

TEST(PaceMeter, TellsHowLongAMiBTakes) {
  PaceMeter meter;
  EXPECT_FALSE(meter.pace(2).is_known());
  meter.begin();
  meter.copied(microseconds(100), kMiB / 2);
  meter.copied(microseconds(60), kMiB / 2);
  EXPECT_FALSE(meter.pace(0).is_known()) << "the call is not over";
  meter.reduced(microseconds(50), kMiB / 16);
  meter.end();
  EXPECT_EQ(meter.pace(2).copies, 320'000U);
  EXPECT_EQ(meter.pace(1).copies, 160'000U);
  EXPECT_EQ(meter.pace(0).copies, 0U);
  EXPECT_EQ(meter.pace(0).reductions, 800'000U);
  EXPECT_FALSE(meter.pace(2).counts);
  meter.found_that_shares_pay(true);
  EXPECT_TRUE(meter.pace(2).counts);
}

TEST(PaceMeter, FollowsWhatChangesAndForgetsCallsThatFailed) {
  PaceMeter meter;
  const auto call = [&](int took, bool succeeds) {
    meter.begin();
    meter.copied(microseconds(took), kMiB);
    meter.reduced(microseconds(took), kMiB);
    if (succeeds) meter.end();
  };
  call(100, true);
  call(100'000, false);
  EXPECT_EQ(meter.pace(1).reductions, 100'000U);
  call(500, true);
  EXPECT_EQ(meter.pace(1).reductions, 200'000U);
  for (int i = 0; i < 30; ++i) call(500, true);
  EXPECT_NEAR(meter.pace(1).copies, 500'000, 1'000);
}

// Whole calls, of ranks of which one is slow: it comes to reduce less, and as much as the others when it is no longer slow.
TEST(Shares, OfARankThatIsSlowBecomeSmall) {
  constexpr Rank kRanks = 8;
  constexpr Rank kSlow = 3;
  constexpr std::size_t kCount = 100'000;
  std::deque<SteppingClock> clocks(kRanks, SteppingClock(microseconds(10)));
  std::vector<const io::Clock*> pointers;
  for (const SteppingClock& clock : clocks) pointers.push_back(&clock);
  DirectWorld world(kRanks, 1, collective::direct::kSlotBytesMin, {}, {.one_stage = 200, .shares_by_pace = 200}, pointers);

  std::vector<std::size_t> reduced(kRanks);
  std::vector<std::vector<std::uint32_t>> data(kRanks, std::vector<std::uint32_t>(kCount, 1));
  Sequence sequence = 0;
  const auto slow_share_after = [&](int calls) {
    for (int i = 0; i < calls; ++i) {
      std::fill(reduced.begin(), reduced.end(), 0);
      ++sequence;
      world.run([&](Rank rank) {
        const auto at = static_cast<std::size_t>(rank);
        const auto counting = user_op<std::uint32_t>("counting", true, [&, at](auto a, auto b, auto out) {
          reduced[at] += out.size();
          clocks[at].pass(clocks[at].step() * out.size() / 500);
          for (std::size_t j = 0; j < out.size(); ++j) out[j] = a[j] + b[j];
        });
        const auto reducer = reduce::Reducer::make(DataType::kU32, counting).value();
        Call call;
        call.operation = OperationId::kAllReduce;
        call.sequence = sequence;
        call.send = call.recv = data[at].data();
        call.count = kCount;
        call.type = DataType::kU32;
        call.reducer = &reducer;
        EXPECT_EQ(run_blocking(world.area(rank), call), Outcome::kDone);
      });
    }
    std::size_t all = 0;
    for (const std::size_t one : reduced) all += one;
    EXPECT_EQ(all, kCount * (kRanks - 1));
    return static_cast<double>(reduced[kSlow]) / static_cast<double>(all);
  };

  EXPECT_NEAR(slow_share_after(1), 1.0 / kRanks, 0.01) << "nobody knows its pace";
  clocks[kSlow].go_by(microseconds(30));
  EXPECT_LT(slow_share_after(10), 0.6 / kRanks);
  clocks[kSlow].go_by(microseconds(10));
  EXPECT_NEAR(slow_share_after(30), 1.0 / kRanks, 0.05);
}

}  // namespace
}  // namespace nexar::test
