#include "plan/chooser.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "plan/cases.h"
#include "plan/planner.h"

namespace nexar::plan {
namespace {

using enum OperationId;

Shape all_reduce(Rank size, std::uint64_t bytes) { return {.operation = kAllReduce, .size = size, .count = bytes / 4}; }

TEST(Chooser, StartsFromTheThresholdsOfTheSpecification) {
  const Chooser chooser;
  const auto name = [&](const Shape& shape) { return std::string(chooser.choose(shape).value().algorithm->name); };
  EXPECT_EQ(name(all_reduce(4, 64 << 20)), "pipelined_ring");
  EXPECT_EQ(name(all_reduce(4, 8 << 20)), "pipelined_ring");
  EXPECT_EQ(name(all_reduce(8, 1 << 20)), "ring");
  EXPECT_EQ(name(all_reduce(9, 1 << 20)), "halving_doubling");
  EXPECT_EQ(name(all_reduce(4, 1 << 10)), "recursive_doubling");
  EXPECT_EQ(chooser.choose(all_reduce(4, 64 << 20)).value().shape.segment, (2u << 20) / 4);
  EXPECT_EQ(chooser.choose(all_reduce(4, 1 << 20)).value().shape.segment, 0u);
}

TEST(Chooser, FollowsMeasuredCosts) {
  const Chooser slow_start({}, LinkModel{.latency_us = 1000, .bandwidth = 1e10});
  EXPECT_EQ(slow_start.choose(all_reduce(16, 1 << 10)).value().algorithm->name, "direct");
  const Chooser thin({}, LinkModel{.latency_us = 1, .bandwidth = 1e8});
  const Choice choice = thin.choose(all_reduce(16, 64 << 20)).value();
  EXPECT_EQ(choice.reason, "cost");
  for (const Candidate& candidate : choice.candidates) EXPECT_LE(choice.predicted_us, candidate.predicted_us);
  EXPECT_TRUE(choice.algorithm->name == "pipelined_ring" || choice.algorithm->name == "rank_ordered") << choice.algorithm->name;
}

// What a rank cannot know of the others must not decide.
TEST(Chooser, ChoosesAlikeOnEveryRank) {
  for (const Chooser& chooser : {Chooser(), Chooser({}, LinkModel{})}) {
    for (const Algorithm* algorithm : every_algorithm()) {
      for (const std::uint64_t count : {0, 5, 100'000, 10'000'000}) {
        Call call = make_call(*algorithm, 6, count, 1);
        const Choice first = chooser.choose(call.shapes[0]).value();
        for (Shape& shape : call.shapes) {
          shape.in_place = shape.rank % 2 == 0 && shape.operation != kAllToAll && shape.operation != kAllToAllV;
          const Choice choice = chooser.choose(shape).value();
          EXPECT_EQ(choice.algorithm, first.algorithm) << shape.to_text();
          EXPECT_EQ(choice.shape.segment, first.shape.segment) << shape.to_text();
        }
      }
    }
  }
}

TEST(Chooser, TakesOnlyWhatIsLegal) {
  for (const Chooser& chooser : {Chooser(), Chooser({}, LinkModel{})}) {
    for (const std::uint64_t bytes : {8, 1 << 20, 64 << 20}) {
      Shape shape = all_reduce(5, bytes);
      shape.ordered = true;
      EXPECT_TRUE(chooser.choose(shape).value().algorithm->has(kOrdered));
      shape.reproducible = true;
      EXPECT_TRUE(chooser.choose(shape).value().algorithm->has(kReproducible));
    }
  }
}

TEST(Chooser, DoesAsItIsTold) {
  const Chooser chooser;
  const Choice choice = chooser.choose(all_reduce(4, 1024), "tree").value();
  EXPECT_EQ(choice.algorithm->name, "tree");
  EXPECT_EQ(choice.reason, "asked for");
  const auto wrong = chooser.choose(all_reduce(4, 1024), "magic");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().sentence().find("halving_doubling"), std::string::npos) << wrong.error().to_string();
  Shape shape = all_reduce(4, 64 << 20);
  shape.segment = 1000;
  EXPECT_EQ(chooser.choose(shape, "pipelined_ring").value().shape.segment, 1000u);
}

TEST(Chooser, ExplainsItself) {
  const Chooser chooser;
  const std::string text = explain(chooser.choose(all_reduce(4, 64 << 20)).value(), 1234.5);
  EXPECT_NE(text.find("* pipelined_ring"), std::string::npos) << text;
  EXPECT_NE(text.find("1234.5 us measured"), std::string::npos) << text;
  for (const Algorithm& algorithm : algorithms_of(kAllReduce)) EXPECT_NE(text.find(algorithm.name), std::string::npos) << text;
}

// The formulas count what the plans do: bytes and messages of the busiest rank.
TEST(Work, AgreesWithThePlans) {
  for (const Algorithm* algorithm : every_algorithm()) {
    for (const Rank size : {1, 2, 4, 8, 6, 13}) {
      const Call call = make_call(*algorithm, size, algorithm->operation == kBarrier ? 0 : 120'120, 1);
      if (!algorithm->legal(call.shapes[0]) || algorithm->work(call.shapes[0]).hops == 0) continue;
      double bytes = 0;
      double messages = 0;
      for (const Plan& plan : call.plans()) {
        double sent = 0, received = 0, sends = 0, receives = 0;
        for (const Step& step : plan.steps) {
          if (step.sends()) sent += static_cast<double>(plan.bytes(step.from())), ++sends;
          if (step.receives()) received += static_cast<double>(plan.bytes(step.into())), ++receives;
        }
        bytes = std::max({bytes, sent, received});
        messages = std::max({messages, sends, receives});
      }
      const Work work = algorithm->work(call.shapes[0]);
      const std::string text = call.to_text() + (" on " + std::to_string(size));
      EXPECT_GE(work.bytes * 1.01, bytes) << text;
      EXPECT_LE(work.bytes, bytes * 2.01) << text;
      EXPECT_LE(work.messages, messages * 2.01) << text;
      EXPECT_GE(work.messages * 2.01, messages) << text;
    }
  }
}

TEST(LinkModel, HasADigestThatTellsModelsApart) {
  EXPECT_EQ(LinkModel{}.digest(), LinkModel{}.digest());
  EXPECT_NE(LinkModel{}.digest(), (LinkModel{.latency_us = 11}.digest()));
  EXPECT_NE(LinkModel{}.digest(), (LinkModel{.eager_limit = 1}.digest()));
}

TEST(Planner, MakesAPlanOnceForEachShape) {
  Planner planner;
  const auto first = planner.plan(all_reduce(4, 1 << 20)).value();
  EXPECT_EQ(planner.plan(all_reduce(4, 1 << 20)).value(), first);
  EXPECT_NE(planner.plan(all_reduce(4, 2 << 20)).value(), first);
  const auto tree = planner.plan(all_reduce(4, 1 << 20), "tree").value();
  EXPECT_EQ(tree->algorithm, "tree");
  EXPECT_EQ(planner.plan(all_reduce(4, 1 << 20)).value(), first);
  EXPECT_EQ(planner.cache().size(), 3u);
  EXPECT_FALSE(planner.plan(all_reduce(4, 1 << 20), "magic"));
  EXPECT_EQ(planner.cache().size(), 3u);
}

TEST(Planner, TellsUnevenCountsApart) {
  Planner planner;
  const Shape one{.operation = kAllGatherV, .size = 2, .receive_counts = {1, 2}};
  const Shape other{.operation = kAllGatherV, .size = 2, .receive_counts = {2, 1}};
  EXPECT_NE(planner.plan(one).value(), planner.plan(other).value());
  EXPECT_EQ(planner.plan(one).value()->shape.receive_counts, one.receive_counts);
}

TEST(PlanCache, KeepsToItsBytesAndDropsWhatWasNotUsedForLongest) {
  const auto plan = std::make_shared<const Plan>(make_plan(all_reduce(8, 1 << 20), *find_algorithm(kAllReduce, "ring")).value());
  PlanCache cache(4 * plan->memory());
  cache.add(all_reduce(8, 4), "", plan);
  cache.add(all_reduce(8, 8), "", plan);
  cache.add(all_reduce(8, 12), "", plan);
  ASSERT_EQ(cache.size(), 3u);
  EXPECT_NE(cache.find(all_reduce(8, 4), ""), nullptr);
  cache.add(all_reduce(8, 16), "", plan);
  EXPECT_EQ(cache.size(), 3u);
  EXPECT_LE(cache.bytes(), 4 * plan->memory());
  EXPECT_EQ(cache.find(all_reduce(8, 8), ""), nullptr);
  EXPECT_NE(cache.find(all_reduce(8, 4), ""), nullptr);
  cache.clear();
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST(PlanCache, DoesNotKeepAPlanThatIsLargerThanItself) {
  const auto plan = std::make_shared<const Plan>(make_plan(all_reduce(8, 1 << 20), *find_algorithm(kAllReduce, "ring")).value());
  PlanCache cache(plan->memory() / 2);
  cache.add(all_reduce(8, 4), "", plan);
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(cache.find(all_reduce(8, 4), ""), nullptr);
}

}  // namespace
}  // namespace nexar::plan
