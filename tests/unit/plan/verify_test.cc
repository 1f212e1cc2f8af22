// Every algorithm, proved on groups of 1 to 17.
#include "plan/verify.h"

#include <gtest/gtest.h>

#include "plan/cases.h"

namespace nexar::plan {
namespace {

class EveryAlgorithm : public testing::TestWithParam<const Algorithm*> {};

std::string name_of(const testing::TestParamInfo<const Algorithm*>& info) {
  return std::string(to_string(info.param->operation)) + "_by_" + std::string(info.param->name);
}

void verify_all(const Algorithm& algorithm, Rank size, int segments_max) {
  for (const std::uint64_t count : counts_for(size)) {
    for (int segments = 1; segments <= segments_max; ++segments) {
      if (segments > 1 && (count < 2 || !algorithm.has(kSegmented))) break;  // there is nothing to cut
      for (const Call& call : calls_of(algorithm, size, count, segments)) {
        const auto report = verify(call.plans());
        ASSERT_TRUE(report) << call.to_text() << ": " << report.error().to_string();
      }
    }
  }
}

TEST_P(EveryAlgorithm, DoesWhatItsShapeAsksOnUpTo17Ranks) {
  for (Rank size = 1; size <= 17; ++size) ASSERT_NO_FATAL_FAILURE(verify_all(*GetParam(), size, 3));
}

INSTANTIATE_TEST_SUITE_P(Verify, EveryAlgorithm, testing::ValuesIn(every_algorithm()), name_of);

class EveryAlgorithmLong : public testing::TestWithParam<const Algorithm*> {};

TEST_P(EveryAlgorithmLong, DoesWhatItsShapeAsksOnUpTo128Ranks) {
  for (Rank size = 1; size <= 33; ++size) ASSERT_NO_FATAL_FAILURE(verify_all(*GetParam(), size, 5));
  for (const Rank size : {64, 100, 128}) ASSERT_NO_FATAL_FAILURE(verify_all(*GetParam(), size, 5));
}

INSTANTIATE_TEST_SUITE_P(VerifyLong, EveryAlgorithmLong, testing::ValuesIn(every_algorithm()), name_of);

// Algorithms that are for large buffers, with enough segments to have something in flight. Halving is not among them: each of its rounds
// adds to what the round before is still adding to.
TEST(Verify, FindsTwoGrantsAheadWhereBuffersAreLarge) {
  const std::pair<OperationId, const char*> large[] = {{OperationId::kAllReduce, "pipelined_ring"},
                                                       {OperationId::kAllReduce, "halving_doubling"},
                                                       {OperationId::kAllReduce, "rank_ordered"},
                                                       {OperationId::kAllReduce, "two_level"},
                                                       {OperationId::kReduceScatter, "ring"},
                                                       {OperationId::kAllGather, "two_level"},
                                                       {OperationId::kBroadcast, "two_level"},
                                                       {OperationId::kAllGather, "ring"},
                                                       {OperationId::kAllGather, "bruck"},
                                                       {OperationId::kBroadcast, "chain"},
                                                       {OperationId::kReduce, "chain"},
                                                       {OperationId::kAllToAll, "pairwise"},
                                                       {OperationId::kGather, "flat"},
                                                       {OperationId::kScatter, "flat"},
                                                       {OperationId::kAllGatherV, "ring"},
                                                       {OperationId::kReduceScatterV, "ring"},
                                                       {OperationId::kAllToAllV, "pairwise"}};
  for (const auto& [operation, name] : large) {
    for (const Rank size : {2, 3, 8, 13}) {
      for (const Call& call : calls_of(*find_algorithm(operation, name), size, 1'000'003, 4)) {
        const auto report = verify(call.plans());
        ASSERT_TRUE(report) << call.to_text() << ": " << report.error().to_string();
        EXPECT_GE(report->grants_ahead, 2u) << call.to_text();
      }
    }
  }
}

// Whether a call is in place is each rank's own affair.
TEST(Verify, LetsSomeRanksCallInPlaceAndOthersNot) {
  for (const Algorithm* algorithm : every_algorithm()) {
    for (const Rank size : {3, 4, 7}) {
      for (Call& call : calls_of(*algorithm, size, 29, 2)) {
        if (!call.shapes[0].in_place) continue;
        for (Shape& shape : call.shapes) shape.in_place = shape.rank % 2 == 0;
        const auto report = verify(call.plans());
        EXPECT_TRUE(report) << call.to_text() << ": " << report.error().to_string();
      }
    }
  }
}

TEST(Verify, CountsStepsAndMessages) {
  const Call call = make_call(*find_algorithm(OperationId::kAllReduce, "ring"), 4, 1000, 1);
  const auto report = verify(call.plans());
  ASSERT_TRUE(report);
  EXPECT_EQ(report->messages, 4u * 2 * 3);
  EXPECT_EQ(report->steps, 2 * report->messages);
}

}  // namespace
}  // namespace nexar::plan
