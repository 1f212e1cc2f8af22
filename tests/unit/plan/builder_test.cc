#include "plan/builder.h"

#include <vector>

#include <gtest/gtest.h>

namespace nexar::plan {
namespace {

const Shape kShape{.operation = OperationId::kAllReduce, .rank = 0, .size = 3, .count = 100};

std::vector<std::uint32_t> waits(const Plan& plan, std::size_t step) {
  const auto list = plan.dependencies.of(step);
  return {list.begin(), list.end()};
}

using Numbers = std::vector<std::uint32_t>;

TEST(PlanBuilder, LetsAReaderWaitForTheLastWriterOnly) {
  PlanBuilder builder(kShape, "test");
  const Slice place = builder.output().sub({0, 10});
  builder.receive(1, store_in(place));
  builder.receive(2, store_in(place));
  builder.send(1, place);
  const Plan plan = builder.build();
  EXPECT_EQ(waits(plan, 0), Numbers{});
  EXPECT_EQ(waits(plan, 1), Numbers{0});
  EXPECT_EQ(waits(plan, 2), Numbers{1});
}

TEST(PlanBuilder, LetsAWriterWaitForAllWhoHaveReadSince) {
  PlanBuilder builder(kShape, "test");
  const Slice place = builder.output().sub({0, 10});
  builder.send(1, place);
  builder.send(2, place);
  builder.receive(1, store_in(place));
  builder.receive(2, store_in(place));
  const Plan plan = builder.build();
  EXPECT_EQ(waits(plan, 1), Numbers{});
  EXPECT_EQ(waits(plan, 2), (Numbers{0, 1}));
  EXPECT_EQ(waits(plan, 3), Numbers{2});
}

TEST(PlanBuilder, FindsConflictsOfSlicesThatOverlapInPart) {
  PlanBuilder builder(kShape, "test");
  builder.receive(1, store_in(builder.output().sub({0, 10})));
  builder.receive(2, store_in(builder.output().sub({10, 10})));
  builder.send(1, builder.output().sub({5, 10}));
  builder.receive(1, store_in(builder.output().sub({14, 1})));
  builder.receive(1, store_in(builder.output().sub({15, 1})));
  builder.send(2, builder.output().sub({0, 20}));
  const Plan plan = builder.build();
  EXPECT_EQ(waits(plan, 2), (Numbers{0, 1}));
  EXPECT_EQ(waits(plan, 3), Numbers{2});
  EXPECT_EQ(waits(plan, 4), Numbers{1});
  EXPECT_EQ(waits(plan, 5), (Numbers{0, 1, 3, 4}));
  EXPECT_EQ(plan.dependents.of(2).size(), 1u);
}

TEST(PlanBuilder, CutsTransfersIntoSegmentsThatOverlap) {
  Shape shape = kShape;
  shape.segment = 30;
  PlanBuilder builder(shape, "test");
  builder.receive(1, store_in(builder.output()));
  builder.send(2, builder.output());
  const Plan plan = builder.build();
  ASSERT_EQ(plan.steps.size(), 8u);
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(plan.steps[i].count, 25u);
    EXPECT_EQ(plan.steps[i].part, i);
    EXPECT_EQ(waits(plan, 4 + i), Numbers{i});
  }
}

TEST(PlanBuilder, DoesNotCutATransferIntoMoreSegmentsThanTheLimit) {
  Shape shape = kShape;
  shape.count = 1'000'000;
  shape.segment = 1;
  PlanBuilder builder(shape, "test");
  builder.send(1, builder.output());
  const Plan plan = builder.build();
  ASSERT_EQ(plan.steps.size(), kSegmentsMax);
  std::uint64_t sent = 0;
  for (const Step& step : plan.steps) sent += step.count;
  EXPECT_EQ(sent, shape.count);
}

TEST(PlanBuilder, LeavesOutWhatIsEmptyOrChangesNothing) {
  PlanBuilder builder(kShape, "test");
  builder.send(1, builder.output().sub({5, 0}));
  builder.receive(1, store_in(builder.output().sub({5, 0})));
  builder.copy(builder.output(), builder.output());
  builder.finish(builder.output());
  EXPECT_TRUE(builder.build().steps.empty());
}

TEST(PlanBuilder, NumbersTheMessagesOfLaterPhasesApart) {
  Shape shape = kShape;
  shape.phase = 1;
  PlanBuilder builder(shape, "test");
  builder.send(1, builder.output());
  EXPECT_EQ(builder.build().steps[0].part, first_part(1));
}

TEST(Plan, SaysInWordsWhatItDoes) {
  PlanBuilder builder(kShape, "test");
  builder.exchange(1, builder.output().sub({0, 4}), 2,
                   reduce_into(builder.output().sub({4, 4}), builder.input().sub({4, 4}), First::kReceived));
  EXPECT_EQ(builder.build().to_text(),
            "all_reduce, rank 0 of 3, count 100 by test\n"
            "   0 send from output[0..4) peer 1 part 0\n"
            "   1 receive_reduce into output[4..8) after it input[4..8) peer 2 part 0\n");
}

TEST(Plan, NamesEachBufferOnceWhenACallIsInPlace) {
  for (const bool in_place : {false, true}) {
    Shape shape = kShape;
    shape.in_place = in_place;
    const Plan plan = PlanBuilder(shape, "test").build();
    EXPECT_EQ(plan.extent_of(Buffer::kInput), in_place ? 0u : 100u);
    EXPECT_EQ(plan.input().buffer, in_place ? Buffer::kOutput : Buffer::kInput);
  }
}

}  // namespace
}  // namespace nexar::plan
