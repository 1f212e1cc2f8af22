// Which way of storing large calls choose, by a clock that the tests turn.
#include "collective/direct/streaming.h"

#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cases.h"
#include "direct_world.h"
#include "io/turned_clock.h"

namespace nexar::test {
namespace {

using collective::direct::Call;
using collective::direct::Operation;
using collective::direct::Outcome;
using collective::direct::Streaming;
using collective::direct::Way;
using std::chrono::microseconds;

class StreamingTest : public testing::Test {
 protected:
  static constexpr Streaming::Kind kKind{OperationId::kAllReduce, false, 4 << 20};
  static constexpr Way kTuned{true, false};
  static constexpr std::uint32_t kCallsOfWay = Streaming::calls_of_way(kKind.bytes);
  static constexpr std::uint32_t kTrials = Streaming::trials(kKind.bytes);

  // A call that takes as long as `cost` says for its way.
  template <typename Cost>
  Way call(Cost cost, const Streaming::Kind& kind = kKind, base::Duration late = {}) {
    auto trial = streaming_.begin(kind, kTuned);
    if (late > base::Duration{}) {
      trial.wait_for_peers();
      clock_.pass(late);
      trial.wait_for_peers();
      trial.have_met();
    }
    clock_.pass(cost(trial.way()));
    streaming_.end(trial);
    return trial.way();
  }

  template <typename Cost>
  void learn(Cost cost, const Streaming::Kind& kind = kKind) {
    for (std::uint32_t i = 0; i < kTrials; ++i) call(cost, kind);
  }

  TurnedClock clock_;
  Streaming streaming_{clock_};
};

TEST_F(StreamingTest, TakesTheFastestOfAllWays) {
  for (const bool in : {false, true})
    for (const bool out : {false, true}) {
      Streaming fresh(clock_);
      const auto cost = [&](Way way) { return microseconds(100 + (way.in == in ? 0 : 20) + (way.out == out ? 0 : 10)); };
      for (std::uint32_t i = 0; i < kTrials + 5; ++i) {
        auto trial = fresh.begin(kKind, kTuned);
        clock_.pass(cost(trial.way()));
        fresh.end(trial);
        if (i < kCallsOfWay) {
          EXPECT_EQ(trial.way(), kTuned);
        }
        if (i >= kTrials) {
          EXPECT_EQ(trial.way(), (Way{in, out})) << i;
        }
      }
    }
}

TEST_F(StreamingTest, FindsWhatPaysOnlyTogether) {
  const Way other{!kTuned.in, !kTuned.out};
  const auto cost = [&](Way way) { return microseconds(way == other ? 700 : way == kTuned ? 1000 : 1050); };
  learn(cost);
  EXPECT_EQ(call(cost), other);
}

TEST_F(StreamingTest, SmallerCallsFindOutAboutSlotsOnly) {
  const Streaming::Kind small{OperationId::kAllReduce, false, Streaming::kResultFrom - 1};
  for (const bool in : {false, true}) {
    Streaming fresh(clock_);
    for (std::uint32_t i = 0; i < Streaming::trials(small.bytes) + 5; ++i) {
      auto trial = fresh.begin(small, kTuned);
      clock_.pass(microseconds(trial.way().in == in ? 90 : 120));
      fresh.end(trial);
      EXPECT_EQ(trial.way().out, kTuned.out) << i;
      if (i >= Streaming::trials(small.bytes)) {
        EXPECT_EQ(trial.way().in, in) << i;
      }
    }
  }
}

TEST_F(StreamingTest, StaysAsTunedWhenAnotherWayIsHardlyFaster) {
  const auto cost = [&](Way way) { return microseconds(way == kTuned ? 1000 : 980); };
  learn(cost);
  EXPECT_EQ(call(cost), kTuned);
}

TEST_F(StreamingTest, OneGoodCallOfAWayIsEnough) {
  int calls = 0;
  const auto cost = [&](Way way) {
    const bool disturbed = calls++ % static_cast<int>(kCallsOfWay) != 1;  // one of the calls that count
    return microseconds((way.in ? 1000 : 800) + (disturbed ? 50'000 : 0));
  };
  learn(cost);
  EXPECT_FALSE(call(cost).in);
}

TEST_F(StreamingTest, TheFirstCallOfAWayDoesNotCount) {
  int calls = 0;
  const auto cost = [&](Way way) {
    return microseconds(calls++ % static_cast<int>(kCallsOfWay) == 0 && way != kTuned ? 1 : way == kTuned ? 1000 : 1100);
  };
  learn(cost);
  EXPECT_EQ(call([](Way) { return microseconds(1); }), kTuned);
}

TEST_F(StreamingTest, PeersThatComeLateDoNotCount) {
  const auto cost = [&](Way way) { return microseconds(way.in ? 1000 : 800); };
  for (std::uint32_t i = 0; i < kTrials; ++i) call(cost, kKind, microseconds(i < kCallsOfWay ? 10 : 100'000));
  EXPECT_FALSE(call(cost).in);
}

TEST_F(StreamingTest, CallsThatFailTeachNothing) {
  const auto fast_if_it_fails = [&](Way way) { return microseconds(way == kTuned ? 1000 : 1); };
  for (std::uint32_t i = 0; i < kTrials; ++i) {
    auto trial = streaming_.begin(kKind, kTuned);
    clock_.pass(fast_if_it_fails(trial.way()));
    if (trial.way() == kTuned) streaming_.end(trial);
  }
  EXPECT_EQ(call(fast_if_it_fails), kTuned);
}

TEST_F(StreamingTest, GivesUpAWayThatIsMuchSlowerAfterTwoCalls) {
  int slow = 0;
  const auto cost = [&](Way way) {
    slow += way.in ? 0 : 1;
    return microseconds(way.in ? 1000 : 7000);
  };
  for (std::uint32_t i = 0; i < Streaming::kPeriod; ++i) call(cost);
  EXPECT_EQ(slow, 4) << "of two ways";
  EXPECT_TRUE(call(cost).in);
}

TEST_F(StreamingTest, TriesAgainLater) {
  const auto past_is_slow = [&](Way way) { return microseconds(way.in ? 1000 : 800); };
  const auto past_is_fast = [&](Way way) { return microseconds(way.in ? 1000 : 1500); };
  learn(past_is_slow);
  for (std::uint32_t i = kTrials; i < Streaming::kPeriod; ++i) {
    EXPECT_FALSE(call(past_is_fast).in) << "not before the period is over";
  }
  learn(past_is_fast);
  EXPECT_TRUE(call(past_is_fast).in);
}

TEST_F(StreamingTest, EachKindAndSizeLearnsForItself) {
  learn([&](Way way) { return microseconds(way.in ? 1000 : 800); });
  const auto same = [](Way) { return microseconds(1); };
  EXPECT_FALSE(call(same, {OperationId::kAllReduce, false, (8 << 20) - 1}).in) << "the same power of two";
  for (const Streaming::Kind& other : {Streaming::Kind{OperationId::kReduce, false, 4 << 20},
                                       {OperationId::kAllReduce, true, 4 << 20},
                                       {OperationId::kAllReduce, false, 8 << 20},
                                       {OperationId::kAllReduce, false, 2 << 20}})
    EXPECT_TRUE(call(same, other).in);
}

TEST_F(StreamingTest, AnySizeHasItsPlace) {
  const auto cost = [&](Way way) { return microseconds(way.in ? 1000 : 800); };
  for (const std::uint64_t bytes : {Streaming::kFrom, std::uint64_t{1} << 30, std::uint64_t{1} << 50, UINT64_MAX}) {
    learn(cost, {OperationId::kScan, false, bytes});
    EXPECT_FALSE(call(cost, {OperationId::kScan, false, bytes}).in) << bytes;
  }
}

// The machines of all ranks with a clock: in each call of the trials all of them take the same way, and the results are right.
TEST_F(StreamingTest, RanksTryTheSameWayInTheSameCall) {
  constexpr Rank kRanks = 3;
  DirectWorld world(kRanks, 1, collective::direct::kSlotBytesMin, {}, {}, {&clock_, &clock_, &clock_});
  std::set<std::pair<bool, bool>> ways;
  for (Sequence sequence = 1; sequence <= kTrials + 2; ++sequence) {
    CaseMemory memory({OperationId::kAllGather, DataType::kI64, ReduceOp::kSum, Streaming::kResultFrom / 8 / kRanks + 1, kRanks}, sequence);
    std::vector<Call> calls;
    std::vector<std::unique_ptr<Operation>> operations;
    for (Rank rank = 0; rank < kRanks; ++rank) calls.push_back(memory.call(rank, sequence));
    for (Rank rank = 0; rank < kRanks; ++rank)
      operations.push_back(std::make_unique<Operation>(world.area(rank), calls[static_cast<std::size_t>(rank)]));
    for (const auto& one : operations) {
      EXPECT_EQ(one->way(), operations[0]->way()) << sequence;
      ways.insert({one->way().in, one->way().out});
    }
    for (bool all_done = false; !all_done;) {
      all_done = true;
      clock_.pass(microseconds(1));
      for (const auto& one : operations) all_done = one->step() == Outcome::kDone && all_done;
    }
    for (Rank rank = 0; rank < kRanks; ++rank) ASSERT_EQ(memory.wrong_at(rank), "");
  }
  EXPECT_EQ(ways.size(), Streaming::ways(Streaming::kResultFrom));
}

}  // namespace
}  // namespace nexar::test
