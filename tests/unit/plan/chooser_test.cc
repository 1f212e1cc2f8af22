#include "plan/chooser.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

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
        Shape variant;
        if (algorithm->has(kTwoLevel)) variant.hosts = layouts_for(6)[0];
        Call call = make_call(*algorithm, 6, count, 1, variant);
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
  for (const Algorithm& algorithm : algorithms_of(kAllReduce))
    EXPECT_EQ(text.find(algorithm.name) != std::string::npos, algorithm.legal(all_reduce(4, 4))) << algorithm.name << " in " << text;
}

const OperationId kOfTwoLevels[] = {kAllReduce, kReduceScatter, kAllGather, kBroadcast, kReduce, kBarrier};

Shape on_hosts(OperationId operation, std::initializer_list<int> sizes, std::uint64_t bytes) {
  Shape shape{.operation = operation, .hosts = hosts_of_sizes(std::vector<int>(sizes))};
  for (const int size : sizes) shape.size += size;
  --shape.size;
  shape.count = operation == kBarrier ? 0 : bytes / 4;
  return shape;
}

TEST(Chooser, TakesTwoLevelsWhereHostsHaveSeveralRanks) {
  for (const Chooser& chooser : {Chooser(), Chooser({}, LinkModel{})}) {
    for (const OperationId operation : kOfTwoLevels) {
      for (const auto& sizes : {std::initializer_list<int>{2, 2}, {3, 2}, {8, 8}, {8, 8, 8, 8}}) {
        const Choice choice = chooser.choose(on_hosts(operation, sizes, 64 << 20)).value();
        EXPECT_NE(explain(choice).find("* two_level"), std::string::npos) << explain(choice);
        EXPECT_EQ(choice.reason, "cost");
      }
    }
  }
}

// A host of one rank gets every slot of the others in a ring too; what all ranks hold crosses its line less often.
TEST(Chooser, WeighsHostsOfOneRank) {
  for (const Chooser& chooser : {Chooser(), Chooser({}, LinkModel{})}) {
    for (const auto& sizes : {std::initializer_list<int>{1, 2, 1}, {4, 1, 4}, {1, 7}}) {
      EXPECT_EQ(chooser.choose(on_hosts(kAllReduce, sizes, 64 << 20)).value().algorithm->name, "two_level");
      const Choice gather = chooser.choose(on_hosts(kAllGather, sizes, 64 << 20)).value();
      for (const Candidate& candidate : gather.candidates) EXPECT_LE(gather.predicted_us, candidate.predicted_us * 1.01) << explain(gather);
    }
  }
}

TEST(Chooser, TakesNoTwoLevelsWhereThereIsOne) {
  for (const Chooser& chooser : {Chooser(), Chooser({}, LinkModel{})}) {
    for (const OperationId operation : kOfTwoLevels) {
      for (const auto& sizes : {std::initializer_list<int>{1, 1, 1, 1}, {4}, {1}}) {
        const Shape shape = on_hosts(operation, sizes, 64 << 20);
        EXPECT_FALSE(shape.hosts.has_levels());
        const Choice choice = chooser.choose(shape).value();
        EXPECT_EQ(explain(choice).find("two_level"), std::string::npos) << explain(choice);
        EXPECT_FALSE(chooser.choose(shape, "two_level"));
      }
    }
  }
}

TEST(Chooser, KeepsRankOrderOnHostsToo) {
  for (const Chooser& chooser : {Chooser(), Chooser({}, LinkModel{})}) {
    for (const OperationId operation : {kAllReduce, kReduceScatter, kReduce}) {
      for (const std::uint64_t bytes : {64, 1 << 20, 64 << 20}) {
        Shape shape = on_hosts(operation, {1, 2, 1}, bytes);
        shape.ordered = true;
        EXPECT_TRUE(chooser.choose(shape).value().algorithm->has(kOrdered));
        shape.reproducible = true;
        EXPECT_TRUE(chooser.choose(shape).value().algorithm->has(kReproducible));
        EXPECT_FALSE(chooser.choose(shape, "two_level"));
      }
    }
  }
}

// A few bytes do not go around hosts.
TEST(Chooser, TakesFewHopsForSmallBuffersOnHosts) {
  for (const Chooser& chooser : {Chooser(), Chooser({}, LinkModel{})})
    for (const OperationId operation : {kAllReduce, kReduceScatter, kAllGather})
      EXPECT_NE(chooser.choose(on_hosts(operation, {4, 4, 4, 4, 4, 4, 4, 4}, 64)).value().algorithm->name, "two_level");
}

// Ranks that take turns over hosts make a ring of ranks cross lines at every hop, and share them.
TEST(Chooser, KnowsWhatHostsCostARing) {
  const Chooser chooser({}, LinkModel{});
  const auto predicted = [&](const Hosts& hosts, std::string_view name) {
    Shape shape = all_reduce(8, 64 << 20);
    shape.hosts = hosts;
    return chooser.choose(shape, name).value().predicted_us;
  };
  const int in_turn[] = {0, 1, 0, 1, 0, 1, 0, 1};
  const int blocks[] = {0, 0, 0, 0, 1, 1, 1, 1};
  EXPECT_GT(predicted(Hosts(in_turn), "pipelined_ring"), 2 * predicted(Hosts(blocks), "pipelined_ring"));
  EXPECT_DOUBLE_EQ(predicted(Hosts(in_turn), "two_level"), predicted(Hosts(blocks), "two_level"));
  EXPECT_LT(predicted(Hosts(blocks), "two_level"), predicted(Hosts(blocks), "pipelined_ring"));
}

// What crosses the line of the busiest host, and what stays inside.
TEST(Work, OfTwoLevelsAgreesWithThePlans) {
  for (const OperationId operation : kOfTwoLevels) {
    const Algorithm& algorithm = *find_algorithm(operation, "two_level");
    for (const Rank size : {4, 6, 8, 13}) {
      for (const Hosts& hosts : layouts_for(size)) {
        Shape variant;
        variant.hosts = hosts;
        const Call call = make_call(algorithm, size, 120'120, 1, variant);
        std::vector<double> left(static_cast<std::size_t>(hosts.count()), 0);
        std::vector<double> came(left);
        double inside = 0;
        for (const Plan& plan : call.plans()) {
          double sent = 0, received = 0;
          const auto here = static_cast<std::size_t>(hosts.host_of(plan.shape.rank));
          for (const Step& step : plan.steps) {
            if (!step.sends() && !step.receives()) continue;
            const bool local = hosts.host_of(step.peer) == hosts.host_of(plan.shape.rank);
            const auto bytes = static_cast<double>(step.sends() ? plan.bytes(step.from()) : plan.bytes(step.into()));
            (local ? (step.sends() ? sent : received) : (step.sends() ? left : came)[here]) += bytes;
          }
          inside = std::max({inside, sent, received});
        }
        const double between = std::max(*std::max_element(left.begin(), left.end()), *std::max_element(came.begin(), came.end()));
        const Work work = algorithm.work(call.shapes[0]);
        EXPECT_GE(work.bytes * work.sharing * 1.01, between) << call.to_text();
        EXPECT_LE(work.bytes * work.sharing, between * 2.01) << call.to_text();
        EXPECT_GE(work.local_bytes * 2.01, inside) << call.to_text();
        EXPECT_LE(work.local_bytes, inside * 2.01) << call.to_text();
      }
    }
  }
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
  EXPECT_NE(LinkModel{}.digest(), (LinkModel{.local_bandwidth = 1e9}.digest()));
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

TEST(Planner, TellsHostsApart) {
  Planner planner;
  const auto two = planner.plan(on_hosts(kAllReduce, {2, 2}, 8 << 20)).value();
  EXPECT_EQ(two->algorithm, "two_level");
  EXPECT_EQ(planner.plan(on_hosts(kAllReduce, {2, 2}, 8 << 20)).value(), two) << "equal hosts, by another handle";
  EXPECT_NE(planner.plan(on_hosts(kAllReduce, {1, 3}, 8 << 20)).value(), two);
  EXPECT_NE(planner.plan(all_reduce(4, 8 << 20)).value(), two);
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
