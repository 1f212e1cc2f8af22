#include "nexar/error.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "nexar/result.h"

namespace nexar {
namespace {

Error lost() {
  return Error(ErrorCode::kPeerLost, "rank 3 stopped answering")
      .with_rank(3)
      .with_operation("all_reduce", 17)
      .with_epoch(2)
      .with_cause(Error(ErrorCode::kIo, "connection refused"));
}

TEST(Error, CarriesEveryFact) {
  const Error error = lost();
  EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
  EXPECT_EQ(error.sentence(), "rank 3 stopped answering");
  ASSERT_EQ(error.ranks().size(), 1u);
  EXPECT_EQ(error.ranks()[0], 3);
  EXPECT_EQ(error.operation(), "all_reduce");
  EXPECT_EQ(error.sequence(), 17u);
  EXPECT_EQ(error.epoch(), 2u);
  ASSERT_NE(error.cause(), nullptr);
  EXPECT_EQ(error.cause()->code(), ErrorCode::kIo);
  EXPECT_EQ(error.to_string(), "peer_lost: rank 3 stopped answering (all_reduce #17, rank 3, epoch 2); cause: io: connection refused");
}

TEST(Error, SaysOnlyWhatItKnows) {
  const Error error(ErrorCode::kTimeout, "nobody came");
  EXPECT_EQ(error.to_string(), "timeout: nobody came");
  EXPECT_TRUE(error.ranks().empty());
  EXPECT_EQ(error.sequence(), std::nullopt);
  EXPECT_EQ(error.cause(), nullptr);
}

TEST(Error, NamesSeveralRanks) {
  const std::vector<Rank> ranks = {1, 4, 5};
  EXPECT_EQ(Error(ErrorCode::kTimeout, "late").with_ranks(ranks).to_string(), "timeout: late (ranks 1, 4, 5)");
}

TEST(Error, ACopyIsNotChangedByWhatIsAddedToTheOther) {
  const Error first(ErrorCode::kIo, "disk full");
  const Error second = Error(first).with_epoch(9);
  EXPECT_EQ(first.epoch(), std::nullopt);
  EXPECT_EQ(second.epoch(), 9u);
}

TEST(Error, AssignmentSharesAndReplaces) {
  Error a(ErrorCode::kIo, "a");
  Error b(ErrorCode::kDevice, "b");
  a = b;
  EXPECT_EQ(a.sentence(), "b");
  const Error& alias = a;
  a = alias;
  EXPECT_EQ(a.sentence(), "b");
  b = Error(ErrorCode::kInternal, "c");
  EXPECT_EQ(a.sentence(), "b");
  EXPECT_EQ(b.sentence(), "c");
}

TEST(Error, CanBeCopiedByManyThreadsAtOnce) {
  const Error error = lost();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&error] {
      for (int i = 0; i < 1000; ++i) {
        Error copy = error;
        copy = Error(copy).with_epoch(7);
        EXPECT_EQ(copy.epoch(), 7u);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(error.epoch(), 2u);
}

TEST(ErrorCode, HasTheNamesOfTheContract) {
  const std::vector<std::string> names = {"invalid_argument", "mismatch",  "peer_lost", "timeout", "overloaded", "refused",
                                          "unsupported",      "cancelled", "device",    "io",      "internal"};
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(to_string(static_cast<ErrorCode>(i)), names[i]);
  EXPECT_EQ(to_string(static_cast<ErrorCode>(200)), "unknown");
}

Result<int> half(int value) {
  if (value % 2 != 0) return Error(ErrorCode::kInvalidArgument, "odd");
  return value / 2;
}

TEST(Result, IsAValueOrAnError) {
  const Result<int> good = half(4);
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, 2);
  EXPECT_EQ(good.value(), 2);

  const Result<int> bad = half(3);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().sentence(), "odd");
}

TEST(Result, ValueThrowsTheErrorForThoseWhoLikeThat) {
  try {
    half(3).value();
    FAIL() << "value() of an error returned";
  } catch (const Exception& exception) {
    EXPECT_EQ(exception.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_STREQ(exception.what(), "invalid_argument: odd");
  }
  const Result<void> failed = Error(ErrorCode::kIo, "disk full");
  EXPECT_THROW(failed.value(), Exception);
}

TEST(Result, HoldsWhatCanOnlyBeMoved) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  EXPECT_EQ(**result, 5);
  const std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 5);
}

TEST(Result, OfNothingIsOnePointer) {
  static_assert(sizeof(Result<void>) == sizeof(void*));
  const Result<void> success;
  EXPECT_TRUE(success);
  success.value();
}

TEST(ResultDeathTest, TakingWhatIsNotThereEndsTheProcessAndSaysWhy) {
  EXPECT_DEATH((void)*half(3), "the value of a failed Result was taken: invalid_argument: odd");
  EXPECT_DEATH((void)half(4).error(), "the error of a Result without one was taken");
}

}  // namespace
}  // namespace nexar
