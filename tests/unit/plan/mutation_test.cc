// A verifier is worth what it refuses: plans with one thing wrong.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "plan/builder.h"
#include "plan/cases.h"
#include "plan/verify.h"

namespace nexar::plan {
namespace {

using Lists = std::vector<std::vector<std::uint32_t>>;

Lists lists_of(const Plan& plan) {
  Lists lists;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) lists.emplace_back(plan.dependencies.of(i).begin(), plan.dependencies.of(i).end());
  return lists;
}

void set_lists(Plan& plan, Lists lists) {
  plan.dependencies = {};
  for (auto& list : lists) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    plan.dependencies.numbers.insert(plan.dependencies.numbers.end(), list.begin(), list.end());
    plan.dependencies.offsets.push_back(static_cast<std::uint32_t>(plan.dependencies.numbers.size()));
  }
  plan.dependents = reversed(plan.dependencies);
}

// Gives messages the numbers that their order says, so that a mutation is not refused for the number alone.
void renumber(Plan& plan) {
  std::vector<std::uint32_t> sent(static_cast<std::size_t>(plan.shape.size), 0);
  std::vector<std::uint32_t> received = sent;
  for (Step& step : plan.steps) {
    if (step.sends()) step.part = sent[static_cast<std::size_t>(step.peer)]++;
    if (step.receives()) step.part = received[static_cast<std::size_t>(step.peer)]++;
  }
}

// Those who waited for the step wait for what it waited for.
void drop(Plan& plan, std::uint32_t dropped) {
  Lists lists = lists_of(plan);
  for (std::uint32_t i = dropped + 1; i < lists.size(); ++i) {
    auto& list = lists[i];
    if (std::erase(list, dropped) > 0) list.insert(list.end(), lists[dropped].begin(), lists[dropped].end());
    for (std::uint32_t& number : list) number -= number > dropped ? 1 : 0;
  }
  lists.erase(lists.begin() + dropped);
  plan.steps.erase(plan.steps.begin() + dropped);
  set_lists(plan, std::move(lists));
  renumber(plan);
}

// The second waits for the first, and everybody who waited for the first for both.
void double_step(Plan& plan, std::uint32_t doubled) {
  Lists lists = lists_of(plan);
  for (auto& list : lists) {
    for (std::uint32_t& number : list) number += number > doubled ? 1 : 0;
    if (std::find(list.begin(), list.end(), doubled) != list.end()) list.push_back(doubled + 1);
  }
  lists.insert(lists.begin() + doubled + 1, std::vector<std::uint32_t>{doubled});
  const Step copy = plan.steps[doubled];
  plan.steps.insert(plan.steps.begin() + doubled + 1, copy);
  set_lists(plan, std::move(lists));
  renumber(plan);
}

// Everything that reduces or moves, on a size that is no power of two and on one that is, with something in every piece.
std::vector<Call> calls() {
  std::vector<Call> calls;
  for (const Algorithm* algorithm : every_algorithm())
    for (const Rank size : {4, 5})
      for (Call& call : calls_of(*algorithm, size, 23, 2)) calls.push_back(std::move(call));
  return calls;
}

// Applies `mutate` to a copy of every plan at every step that `applies` to, and expects all to be refused.
template <typename Applies, typename Mutate>
void expect_refused(Applies applies, Mutate mutate) {
  std::size_t tried = 0;
  for (const Call& call : calls()) {
    const std::vector<Plan> good = call.plans();
    for (std::size_t rank = 0; rank < good.size(); ++rank) {
      for (std::uint32_t step = 0; step < good[rank].steps.size(); ++step) {
        if (!applies(good[rank], step)) continue;
        std::vector<Plan> bad = good;
        if (!mutate(bad[rank], step)) continue;
        ++tried;
        ASSERT_FALSE(verify(bad)) << call.to_text() << "\nstep " << step << " of\n"
                                  << good[rank].to_text() << "became\n"
                                  << bad[rank].to_text();
      }
    }
  }
  EXPECT_GT(tried, 100u);
}

bool always(const Plan&, std::uint32_t) { return true; }

TEST(VerifierRefuses, APlanWithoutOneOfItsSteps) {
  expect_refused(always, [](Plan& plan, std::uint32_t step) { return drop(plan, step), true; });
}

TEST(VerifierRefuses, APlanThatDoesAStepTwice) {
  // A second copy of the same values, reduction of other places or neutral element changes nothing.
  const auto changes = [](const Plan& plan, std::uint32_t number) {
    const Step& step = plan.steps[number];
    return step.sends() || step.receives() || step.kind == StepKind::kFinish;
  };
  expect_refused(changes, [](Plan& plan, std::uint32_t step) { return double_step(plan, step), true; });
}

TEST(VerifierRefuses, TwoMessagesInTheWrongOrder) {
  // The next message the same way goes first; what they touch stays with the place in the order.
  expect_refused([](const Plan& plan, std::uint32_t step) { return plan.steps[step].sends(); },
                 [](Plan& plan, std::uint32_t number) {
                   Step& step = plan.steps[number];
                   for (std::uint32_t later = number + 1; later < plan.steps.size(); ++later) {
                     Step& other = plan.steps[later];
                     if (!other.sends() || other.peer != step.peer) continue;
                     std::swap(other.from_first, step.from_first);
                     std::swap(other.from_buffer, step.from_buffer);
                     return true;
                   }
                   return false;
                 });
}

TEST(VerifierRefuses, AStepMovedBeforeWhatItWaitsFor) {
  // Dependencies of the two change places with them: each keeps those of its new place.
  expect_refused(
      [](const Plan& plan, std::uint32_t step) { return step + 1 < plan.steps.size() && !plan.dependencies.of(step + 1).empty(); },
      [](Plan& plan, std::uint32_t step) {
        const auto list = plan.dependencies.of(step + 1);
        if (std::find(list.begin(), list.end(), step) == list.end()) return false;
        // Of two ranks' values that are added to the same place either may come first.
        const Step& one = plan.steps[step];
        const Step& other = plan.steps[step + 1];
        if (!plan.shape.ordered && one.kind == StepKind::kReceiveReduce && other.kind == one.kind && one.peer != other.peer &&
            one.into() == one.from() && one.into() == other.into() && other.into() == other.from())
          return false;
        std::swap(plan.steps[step], plan.steps[step + 1]);
        renumber(plan);
        return true;
      });
}

TEST(VerifierRefuses, AWrongSlice) {
  expect_refused(always, [](Plan& plan, std::uint32_t number) {
    Step& step = plan.steps[number];
    if (step.into_buffer == Buffer::kToken || step.from_buffer == Buffer::kToken) return false;
    if (step.kind == StepKind::kReduce) {
      plan.sources[step.source_first].first += 1;
    } else if (step.reads_from()) {
      step.from_first += 1;
    } else {
      step.into_first += 1;
    }
    return true;
  });
}

TEST(VerifierRefuses, AShorterMessage) {
  expect_refused([](const Plan& plan, std::uint32_t step) { return plan.steps[step].sends() || plan.steps[step].receives(); },
                 [](Plan& plan, std::uint32_t step) { return --plan.steps[step].count, true; });
}

TEST(VerifierRefuses, OperandsInTheWrongOrder) {
  // Where ranks compute a value together, or rank order is asked for, the order shows; elsewhere it is as good as the other.
  const auto shows = [](const Plan& plan, std::uint32_t step) {
    return plan.steps[step].kind == StepKind::kReceiveReduce && plan.shape.operation != OperationId::kBarrier &&
           (plan.shape.ordered || (plan.algorithm == "recursive_doubling" && plan.shape.size == 4));
  };
  expect_refused(shows,
                 [](Plan& plan, std::uint32_t step) { return plan.steps[step].flags ^= Step::kReceivedFirst, plan.steps[step].part < 2; });
}

// Whether the graph still orders the two without the edge.
bool implied(const Lists& lists, std::uint32_t later, std::uint32_t earlier) {
  for (const std::uint32_t number : lists[later])
    if (number != earlier && number > earlier &&
        (std::find(lists[number].begin(), lists[number].end(), earlier) != lists[number].end() || implied(lists, number, earlier)))
      return true;
  return false;
}

TEST(VerifierRefuses, AMissingDependency) {
  const auto orders_data = [](const Plan& plan, std::uint32_t) {
    return plan.algorithm != "pairwise";
  };  // whose dependencies limit what is in flight
  expect_refused(orders_data, [](Plan& plan, std::uint32_t step) {
    Lists lists = lists_of(plan);
    if (lists[step].empty()) return false;
    const std::uint32_t missing = lists[step].back();
    if (implied(lists, step, missing)) return false;
    lists[step].pop_back();
    set_lists(plan, std::move(lists));
    return true;
  });
}

TEST(VerifierRefuses, AGrantThatNothingVouchesFor) {
  // In reduce_scatter by ring a place in scratch is taken again while what was there may still be on its way.
  const Call call = make_call(*find_algorithm(OperationId::kReduceScatter, "ring"), 9, 23, 1);
  std::vector<Plan> plans = call.plans();
  ASSERT_TRUE(verify(plans));
  std::size_t waiting = 0;
  for (std::uint32_t step = 0; step < plans[0].steps.size(); ++step) {
    if (!plans[0].steps[step].receives() || plans[0].dependencies.of(step).empty()) continue;
    ++waiting;
    std::vector<Plan> bad = plans;
    bad[0].steps[step].flags |= Step::kAhead;
    EXPECT_FALSE(verify(bad)) << step;
  }
  EXPECT_GT(waiting, 0u);
}

TEST(VerifierRefuses, TwoRanksThatOverwriteWhatTheySend) {
  // Exchanging two buffers in place: each receive waits for a send that waits for the other's receive.
  Shape shape{.operation = OperationId::kAllToAll, .size = 2, .count = 1};
  std::vector<Plan> plans;
  for (Rank rank = 0; rank < 2; ++rank) {
    shape.rank = rank;
    PlanBuilder plan(shape, "swap");
    const auto slot = [&](Rank i) { return plan.output().sub({static_cast<std::uint64_t>(i), 1}); };
    plan.copy(plan.input(), plan.output());
    plan.send(1 - rank, slot(1 - rank));
    plan.receive(1 - rank, store_in(slot(1 - rank)));
    plans.push_back(plan.build());
  }
  const auto report = verify(plans);
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().sentence().find("deadlock"), std::string::npos) << report.error().to_string();
}

TEST(VerifierRefuses, AReductionInTwoPlacesWhereOneIsAskedFor) {
  Call call = make_call(*find_algorithm(OperationId::kAllReduce, "tree"), 4, 10, 1);
  std::vector<Plan> plans = call.plans();
  ASSERT_TRUE(verify(plans));
  for (Plan& plan : plans) plan.shape.reproducible = true;
  EXPECT_FALSE(verify(plans));
}

TEST(VerifierRefuses, RanksThatSeeTheirHostsDifferently) {
  const Algorithm& algorithm = *find_algorithm(OperationId::kAllReduce, "two_level");
  std::vector<Plan> plans = calls_of(algorithm, 4, 23, 1, Hosts(std::vector{0, 0, 1, 1})).front().plans();
  ASSERT_TRUE(verify(plans));
  plans[3] = calls_of(algorithm, 4, 23, 1, Hosts(std::vector{0, 1, 1, 0})).front().plans()[3];
  EXPECT_FALSE(verify(plans));
}

TEST(VerifierRefuses, ARingWhereRankOrderIsAskedFor) {
  Call call = make_call(*find_algorithm(OperationId::kAllReduce, "ring"), 3, 10, 1);
  std::vector<Plan> plans = call.plans();
  for (Plan& plan : plans) plan.shape.ordered = true;
  EXPECT_FALSE(verify(plans));
}

TEST(VerifierRefuses, AWriteToTheUsersInput) {
  Call call = make_call(*find_algorithm(OperationId::kReduceScatter, "ring"), 3, 10, 1);
  std::vector<Plan> plans = call.plans();
  plans[1].steps[1].into_buffer = Buffer::kInput;
  EXPECT_FALSE(verify(plans));
}

}  // namespace
}  // namespace nexar::plan
