// How operations end when they do not succeed, and what the others learn: every row of the table, with time that only the test moves.
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collective/network.h"

namespace nexar::collective::test {
namespace {

using namespace std::chrono_literals;
using enum OperationId;

// One rank's call of an operation on i32 values, its buffers and its result.
struct Caller {
  std::vector<std::int32_t> input;
  std::vector<std::int32_t> output;
  Call call;
  std::optional<Result<void>> result;

  bool ended() const { return result.has_value(); }
  ErrorCode code() const { return result->error().code(); }
  const std::string& sentence() const { return result->error().sentence(); }
};

struct What {
  OperationId operation = kAllReduce;
  std::uint64_t count = 4;
  ReduceOp op = ReduceOp::kSum;
  DataType type = DataType::kI32;
  Rank root = 0;
};

void describe(Caller& caller, Rank rank, Rank size, const What& what) {
  Call& call = caller.call;
  call = {};
  call.group = Network::kGroup;
  call.shape.operation = what.operation;
  call.shape.rank = rank;
  call.shape.size = size;
  call.descriptor.operation = what.operation;
  if (what.operation != kBarrier) {
    call.shape.count = call.descriptor.count = what.count;
    call.descriptor.dtype = what.type;
  }
  if (plan::has_root(what.operation)) call.shape.root = call.descriptor.root = what.root;
  if (plan::reduces(what.operation)) {
    call.op = call.descriptor.op = what.op;
    call.reducer = reduce::Reducer::make(what.type, what.op).value();
  }
  caller.input.assign(call.shape.input_count(), rank + 1);
  caller.output.assign(call.shape.output_count(), 0);
  call.input = caller.input.data();
  call.output = caller.output.data();
  call.done = [&caller](Result<void> result) { caller.result = std::move(result); };
}

class World {
 public:
  explicit World(Rank size, const Timeouts& timeouts = {}, std::uint64_t eager_bytes = 1 << 20, std::uint64_t seed = 1)
      : network(size, seed, eager_bytes, timeouts), size_(size) {}

  Caller& begin(Rank rank, const What& what = {}) {
    Caller& caller = callers_.emplace_back();
    describe(caller, rank, size_, what);
    network.rank(rank).begin(caller.call);
    return caller;
  }

  // All ranks call, and it is right: the group is usable.
  void expect_usable() {
    std::vector<Caller*> all;
    for (Rank rank = 0; rank < size_; ++rank) all.push_back(&begin(rank));
    network.pass(1s);
    for (const Caller* caller : all) {
      ASSERT_TRUE(caller->ended() && *caller->result);
      EXPECT_EQ(caller->output, std::vector<std::int32_t>(4, size_ * (size_ + 1) / 2));
    }
  }

  Network network;

 private:
  Rank size_;
  std::deque<Caller> callers_;
};

void expect_mismatch(const What& a, const What& b, const std::string& a_text, const std::string& b_text, std::uint64_t eager_bytes) {
  World world(2, {}, eager_bytes);
  const Caller& zero = world.begin(0, a);
  const Caller& one = world.begin(1, b);
  world.network.pass(1s);
  ASSERT_TRUE(zero.ended() && one.ended()) << a_text << " and " << b_text;
  ASSERT_FALSE(*zero.result);
  ASSERT_FALSE(*one.result);
  EXPECT_EQ(zero.code(), ErrorCode::kMismatch);
  EXPECT_EQ(one.code(), ErrorCode::kMismatch);
  EXPECT_EQ(zero.sentence(), "rank 0 called " + a_text + " and rank 1 called " + b_text);
  EXPECT_EQ(one.sentence(), zero.sentence());
  EXPECT_EQ(zero.result->error().sequence(), 1u);
  world.expect_usable();
}

TEST(Mismatch, NamesWhoCalledWhat) {
  for (const std::uint64_t eager_bytes : {0, 1 << 20}) {  // found by a grant, and by a message
    expect_mismatch({.count = 4}, {.count = 5}, "all_reduce(count=4, i32, sum)", "all_reduce(count=5, i32, sum)", eager_bytes);
    expect_mismatch({.type = DataType::kI32}, {.type = DataType::kU32}, "all_reduce(count=4, i32, sum)", "all_reduce(count=4, u32, sum)",
                    eager_bytes);
    expect_mismatch({.op = ReduceOp::kSum}, {.op = ReduceOp::kMax}, "all_reduce(count=4, i32, sum)", "all_reduce(count=4, i32, max)",
                    eager_bytes);
    expect_mismatch({.operation = kAllReduce}, {.operation = kAllGather}, "all_reduce(count=4, i32, sum)", "all_gather(count=4, i32)",
                    eager_bytes);
    expect_mismatch({.operation = kBarrier}, {.operation = kAllReduce}, "barrier()", "all_reduce(count=4, i32, sum)", eager_bytes);
  }
}

TEST(Mismatch, IsFoundWhereNobodySends) {
  expect_mismatch({.operation = kBroadcast, .root = 1}, {.operation = kBroadcast, .root = 0}, "broadcast(count=4, i32, root=1)",
                  "broadcast(count=4, i32, root=0)", 1 << 20);
  expect_mismatch({.operation = kScatter, .root = 1}, {.operation = kReduce, .root = 1}, "scatter(count=4, i32, root=1)",
                  "reduce(count=4, i32, sum, root=1)", 1 << 20);
}

TEST(Mismatch, ReachesRanksThatAgreeWithEachOther) {
  World world(4);
  std::vector<Caller*> all;
  for (Rank rank = 0; rank < 4; ++rank) all.push_back(&world.begin(rank, {.count = rank == 2 ? 9u : 4u}));
  world.network.pass(1s);
  for (const Caller* caller : all) {
    ASSERT_TRUE(caller->ended() && !*caller->result);
    EXPECT_EQ(caller->code(), ErrorCode::kMismatch);
    EXPECT_NE(caller->sentence().find("rank 2 called all_reduce(count=9, i32, sum)"), std::string::npos) << caller->sentence();
  }
  world.expect_usable();
}

TEST(Refusal, EndsTheOthersWithTheRankAndItsError) {
  World world(3);
  const Caller& zero = world.begin(0);
  Caller wrong;
  describe(wrong, 1, 3, {});
  wrong.call.refusal = Error(ErrorCode::kInvalidArgument, "all_reduce: the buffer is null");
  world.network.rank(1).begin(wrong.call);
  world.network.pass(1ms);
  const Caller& two = world.begin(2);  // late: it learns it at once
  EXPECT_EQ(wrong.code(), ErrorCode::kInvalidArgument);
  for (const Caller* caller : {&zero, &two}) {
    ASSERT_TRUE(caller->ended() && !*caller->result);
    EXPECT_EQ(caller->code(), ErrorCode::kCancelled);
    EXPECT_EQ(caller->sentence(), "rank 1 failed with invalid_argument: all_reduce: the buffer is null");
    EXPECT_EQ(caller->result->error().operation(), "all_reduce");
  }
  world.expect_usable();
}

TEST(Cancellation, EndsItEverywhereAndLeavesTheGroupUsable) {
  World world(3, {}, 0);  // grants: nothing is done before everybody is in
  Caller& zero = world.begin(0, {.count = 1000});
  const Caller& one = world.begin(1, {.count = 1000});
  world.network.run();
  world.network.rank(0).cancel(zero.call, Error(ErrorCode::kCancelled, "the operation was cancelled"));
  world.network.run();
  const Caller& two = world.begin(2, {.count = 1000});
  EXPECT_EQ(zero.code(), ErrorCode::kCancelled);
  for (const Caller* caller : {&one, &two}) {
    ASSERT_TRUE(caller->ended());
    EXPECT_EQ(caller->code(), ErrorCode::kCancelled);
    EXPECT_EQ(caller->sentence(), "rank 0 ended it: the operation was cancelled");
  }
  world.expect_usable();
}

TEST(Cancellation, AtAnyMomentLeavesEverybodyWithSuccessOrTheVerdict) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    World world(4, {}, seed % 2 == 0 ? 0 : 256, seed);
    std::vector<Caller*> all;
    for (Rank rank = 0; rank < 4; ++rank) all.push_back(&world.begin(rank, {.count = 500}));
    std::uint64_t steps = seed;
    world.network.run([&] { return steps-- == 0; });
    world.network.rank(3).cancel(all[3]->call, Error(ErrorCode::kCancelled, "the operation was cancelled"));
    world.network.pass(2s);
    for (const Caller* caller : all) {
      ASSERT_TRUE(caller->ended()) << "seed " << seed;
      if (*caller->result)
        EXPECT_EQ(caller->output, std::vector<std::int32_t>(500, 10)) << "seed " << seed;
      else
        EXPECT_EQ(caller->code(), ErrorCode::kCancelled);
    }
    world.expect_usable();
    if (testing::Test::HasFailure()) return;
  }
}

// Everything that it needs is here, and only the verdict is still on its way.
TEST(Lateness, DoesNotSucceedWithWhatOthersHaveGivenUp) {
  World world(3);
  Caller& zero = world.begin(0, {.operation = kBroadcast});  // sends, and is done
  Caller& one = world.begin(0);
  const Caller& other = world.begin(1, {.operation = kBroadcast});
  Caller& one_too = world.begin(1);
  world.network.pass(200ms);
  ASSERT_TRUE(zero.ended() && *zero.result && other.ended() && *other.result);
  world.network.rank(0).cancel(one.call, Error(ErrorCode::kCancelled, "the operation was cancelled"));
  world.network.rank(1).cancel(one_too.call, Error(ErrorCode::kCancelled, "the operation was cancelled"));
  const Caller& late = world.begin(2, {.operation = kBroadcast});
  const Caller& too_late = world.begin(2);
  world.network.run();
  ASSERT_TRUE(late.ended() && *late.result) << "what the others have done is done";
  ASSERT_TRUE(too_late.ended() && !*too_late.result);
  EXPECT_EQ(too_late.code(), ErrorCode::kCancelled);
  EXPECT_NE(too_late.sentence().find("ended it: the operation was cancelled"), std::string::npos) << too_late.sentence();
  world.expect_usable();
}

TEST(Lateness, AsksBeforeItSucceeds) {
  World world(2);
  Caller& zero = world.begin(0);
  world.network.pass(200ms);
  world.network.rank(0).cancel(zero.call, Error(ErrorCode::kCancelled, "the operation was cancelled"));
  const Caller& late = world.begin(1);  // the verdict is on its way
  EXPECT_FALSE(late.ended());
  world.network.run();
  ASSERT_TRUE(late.ended() && !*late.result);
  EXPECT_EQ(late.sentence(), "rank 0 ended it: the operation was cancelled");
  world.expect_usable();
}

TEST(Lateness, OfARankAfterOneThatHasLeftCostsNothing) {
  World world(2);
  const Caller& root = world.begin(0, {.operation = kBroadcast});
  world.network.pass(200ms);
  ASSERT_TRUE(root.ended() && *root.result);
  world.network.port(1).departed_rank = 0;
  world.network.port(1).departed = Error(ErrorCode::kPeerLost, "rank 0 has left");
  const Caller& late = world.begin(1, {.operation = kBroadcast});
  ASSERT_TRUE(late.ended() && *late.result);
}

TEST(Lateness, DoesNotWaitForAnAnswerOfOneThatLeaves) {
  World world(2);
  const Caller& root = world.begin(0, {.operation = kBroadcast});
  world.network.pass(200ms);
  ASSERT_TRUE(root.ended() && *root.result);
  world.network.port(0).is_mute = true;
  const Caller& late = world.begin(1, {.operation = kBroadcast});
  world.network.pass(1s);
  EXPECT_FALSE(late.ended());
  world.network.port(1).departed_rank = 0;
  world.network.port(1).departed = Error(ErrorCode::kPeerLost, "rank 0 has left");
  world.network.pass(2s);
  ASSERT_TRUE(late.ended() && *late.result);
}

TEST(Timeout, NamesWhoHasNotEnteredAndWhoWaitsForWhom) {
  World world(4, {.entry = 10s, .progress = 1s});
  const Caller& zero = world.begin(0, {.operation = kBarrier});
  const Caller& one = world.begin(1, {.operation = kBarrier});
  const Caller& two = world.begin(2, {.operation = kBarrier});
  world.network.pass(9s);
  EXPECT_FALSE(zero.ended() || one.ended() || two.ended());  // far beyond the progress timeout: somebody is missing
  world.network.pass(3s);
  for (const Caller* caller : {&zero, &one, &two}) {
    ASSERT_TRUE(caller->ended() && !*caller->result);
    EXPECT_EQ(caller->code(), ErrorCode::kTimeout);
    EXPECT_EQ(caller->sentence().rfind("barrier() did not end within the entry_timeout of 10s: not entered by rank 3; ", 0), 0u)
        << caller->sentence();
    EXPECT_NE(caller->sentence().find(" waited for rank "), std::string::npos) << caller->sentence();
    ASSERT_EQ(caller->result->error().ranks().size(), 1u);
    EXPECT_EQ(caller->result->error().ranks()[0], 3);
  }
  const Caller& three = world.begin(3, {.operation = kBarrier});  // gets the verdict at once
  ASSERT_TRUE(three.ended());
  EXPECT_EQ(three.code(), ErrorCode::kTimeout);
  world.expect_usable();
}

TEST(Timeout, OfAnEntryEndsWhenTheLastOneEnters) {
  World world(3, {.entry = 10s, .progress = 1s});
  std::vector<Caller*> all = {&world.begin(0), &world.begin(1)};
  world.network.pass(9s);
  all.push_back(&world.begin(2));
  world.network.pass(500ms);
  for (const Caller* caller : all) ASSERT_TRUE(caller->ended() && *caller->result);
}

TEST(Timeout, OfACallIsItsDeadline) {
  World world(2);
  Caller caller;
  describe(caller, 0, 2, {});
  caller.call.deadline = 200ms;
  world.network.rank(0).begin(caller.call);
  world.network.pass(190ms);
  EXPECT_FALSE(caller.ended());
  world.network.pass(20ms);
  ASSERT_TRUE(caller.ended());
  EXPECT_EQ(caller.code(), ErrorCode::kTimeout);
  EXPECT_EQ(caller.sentence(),
            "all_reduce(count=4, i32, sum) did not end within the deadline of 200ms: not entered by rank 1; rank 0 waited for rank 1, 1 of "
            "3 steps and 16 bytes done");
  const Caller& late = world.begin(1);
  ASSERT_TRUE(late.ended());
  EXPECT_EQ(late.sentence(), caller.sentence());
  world.expect_usable();
}

TEST(Loss, EndsEverythingAndWhatComesLater) {
  World world(3);
  const Caller& zero = world.begin(0);
  const Caller& one = world.begin(1, {.operation = kBarrier});
  const Error lost = Error(ErrorCode::kPeerLost, "rank 2 is lost").with_rank(2);
  world.network.port(0).revoke(lost);
  world.network.port(1).revoke(lost);
  EXPECT_EQ(zero.code(), ErrorCode::kPeerLost);
  EXPECT_EQ(one.code(), ErrorCode::kPeerLost);
  EXPECT_EQ(world.begin(0).code(), ErrorCode::kPeerLost);
  EXPECT_EQ(world.network.rank(0).running(), 0u);
}

TEST(UserOps, ThatThrowEndTheOperation) {
  World world(2);
  std::vector<Caller> callers(2);
  for (Rank rank = 0; rank < 2; ++rank) {
    Caller& caller = callers[static_cast<std::size_t>(rank)];
    describe(caller, rank, 2, {});
    caller.call.op.reset();
    caller.call.descriptor.op.reset();
    caller.call.descriptor.user_op = true;
    const UserOp throws{"throws", [](const void*, const void*, void*, std::size_t, DataType) { throw std::runtime_error("no"); }};
    caller.call.reducer = reduce::Reducer::make(DataType::kI32, throws).value();
    world.network.rank(rank).begin(caller.call);
  }
  world.network.pass(1s);
  for (const Caller& caller : callers) {
    ASSERT_TRUE(caller.ended() && !*caller.result);
    EXPECT_NE(caller.sentence().find("user op throws threw: no"), std::string::npos);
  }
  world.expect_usable();
}

TEST(Memory, OfVerdictsThatNobodyAskedForIsBounded) {
  World world(2);
  for (std::size_t i = 0; i < kEarlyVerdictsMax + 100; ++i) {
    Caller wrong;
    describe(wrong, 1, 2, {});
    wrong.call.refusal = Error(ErrorCode::kInvalidArgument, "wrong");
    world.network.rank(1).begin(wrong.call);
    world.network.run();
  }
  // Those that were kept are known at once, the others when this rank asks.
  for (std::size_t i = 0; i < kEarlyVerdictsMax + 100; ++i) {
    const Caller& caller = world.begin(0);
    EXPECT_EQ(caller.ended(), i < kEarlyVerdictsMax);
    world.network.pass(1s);
    ASSERT_EQ(caller.ended(), i < kEarlyVerdictsMax || i >= kEarlyVerdictsMax + 100 - kEndedMax) << i;
    if (!caller.ended()) world.network.rank(0).cancel(const_cast<Call&>(caller.call), Error(ErrorCode::kCancelled, "enough"));
  }
}

TEST(InFlight, CallsBeyondTheLimitAreOverloaded) {
  World world(2);
  for (std::size_t i = 0; i < kInFlightMax; ++i) EXPECT_FALSE(world.begin(0).ended());
  EXPECT_EQ(world.begin(0).code(), ErrorCode::kOverloaded);
  for (std::size_t i = 0; i < kInFlightMax; ++i) world.begin(1);
  world.network.run();
  EXPECT_EQ(world.begin(1).code(), ErrorCode::kCancelled);
  EXPECT_EQ(world.network.rank(0).running(), 0u);
  EXPECT_EQ(world.network.rank(0).spare(), kInFlightMax);
  world.expect_usable();
  EXPECT_EQ(world.network.rank(0).spare(), kSpareOperationsMax) << "few are kept, and the next call uses one of them";
}

}  // namespace
}  // namespace nexar::collective::test
