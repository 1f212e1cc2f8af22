#include "plan/version.h"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "base/hash.h"
#include "plan/cases.h"
#include "plan/chooser.h"

namespace nexar::plan {
namespace {

// What other ranks notice of a plan: its messages, and on which side of an operand they are.
void add_messages(const Plan& plan, std::string& text) {
  for (const Step& step : plan.steps) {
    if (!step.sends() && !step.receives()) continue;
    text += step.sends() ? '>' : step.received_first() ? '<' : '+';
    for (const std::uint64_t number :
         {static_cast<std::uint64_t>(step.peer), std::uint64_t{step.part}, std::uint64_t{step.channel}, step.count})
      text += std::to_string(number) + ' ';
  }
}

std::string messages_of_everything() {
  std::string text;
  for (const Algorithm* algorithm : every_algorithm())
    for (const Rank size : {2, 3, 4, 6})
      for (const std::uint64_t count : {1, 7, 1009})
        for (const Call& call : calls_in_turn(*algorithm, size, count, 2, count))
          for (const Plan& plan : call.plans()) add_messages(plan, text);
  return text;
}

std::string choices_of_everything() {
  std::string text;
  const Chooser chooser;
  for (const Algorithm* algorithm : every_algorithm()) {
    if (algorithm->has(kTwoLevel)) continue;  // by predicted costs, which a compiler may round otherwise
    for (const Rank size : {2, 4, 7, 8, 9, 33})
      for (std::uint64_t count = 1; count <= 16 << 20; count *= 4) {
        const Choice choice = chooser.choose(make_call(*algorithm, size, count, 1).shapes[0]).value();
        text.append(choice.algorithm->name).append(std::to_string(choice.shape.segment)).append(" ");
      }
  }
  return text;
}

TEST(PlanVersion, IsRaisedWithEveryChangeThatOtherRanksWouldNotice) {
  constexpr const char* kAdvice = "plans are not those of this kPlanVersion: raise it, and write down the new digest here";
  EXPECT_EQ(kPlanVersion, 1);
  EXPECT_EQ(base::hash64(messages_of_everything()), 7806183185133399493u) << kAdvice;
  EXPECT_EQ(base::hash64(choices_of_everything()), 11470977140739457965u) << kAdvice;
}

}  // namespace
}  // namespace nexar::plan
