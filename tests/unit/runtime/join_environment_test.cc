#include "runtime/join_environment.h"

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nexar::runtime {
namespace {

using Variables = std::map<std::string, std::string>;

Result<JoinPlan> plan_in(const Variables& variables) {
  return plan_join([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(JoinEnvironment, SaysEverythingThatJoiningNeeds) {
  const auto plan = plan_in({{"NEXAR_SEED", "h:1"},
                             {"NEXAR_TOKEN", "nxr1-x"},
                             {"NEXAR_RANK", "3"},
                             {"NEXAR_PORT", "7000-7009"},
                             {"NEXAR_INTERFACES", "eth0,10.0.0.0/8"},
                             {"NEXAR_JOIN_TIMEOUT", "5s"},
                             {"NEXAR_HEARTBEAT_TIMEOUT", "2s"}});
  ASSERT_TRUE(plan) << plan.error().to_string();
  EXPECT_EQ(plan->options.seed, "h:1");
  EXPECT_EQ(plan->options.config.token, "nxr1-x");
  EXPECT_EQ(plan->options.rank, 3);
  EXPECT_EQ(plan->options.port, "7000-7009");
  EXPECT_EQ(plan->options.interfaces, (std::vector<std::string>{"eth0", "10.0.0.0/8"}));
  EXPECT_EQ(plan->options.deadline, std::chrono::seconds(5));
  EXPECT_EQ(plan->options.config.heartbeat_timeout, std::chrono::seconds(2));
  EXPECT_FALSE(plan->seed);
}

TEST(JoinEnvironment, LetsRankZeroOfAnotherLauncherRunTheSeed) {
  Variables torchrun = {{"RANK", "0"},
                        {"WORLD_SIZE", "4"},
                        {"MASTER_ADDR", "m"},
                        {"MASTER_PORT", "29500"},
                        {"NEXAR_TOKEN", "nxr1-x"},
                        {"NEXAR_SEED_FILE", "/s"}};
  auto plan = plan_in(torchrun);
  ASSERT_TRUE(plan) << plan.error().to_string();
  EXPECT_EQ(plan->seed, (OwnSeed{"/s", {"[::]:29500", "0.0.0.0:29500"}, 4}));
  EXPECT_EQ(plan->options.seed, "m:29500");
  torchrun["RANK"] = "1";
  plan = plan_in(torchrun);
  ASSERT_TRUE(plan) << plan.error().to_string();
  EXPECT_FALSE(plan->seed);
}

TEST(JoinEnvironment, NamesTheVariableThatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {{"NEXAR_JOIN_TIMEOUT", "soon"},     {"NEXAR_JOIN_TIMEOUT", "0s"},
                                                                  {"NEXAR_INTERFACES", "eth0,,eth1"}, {"NEXAR_INTERFACES", ""},
                                                                  {"NEXAR_HEARTBEAT_TIMEOUT", "x"},   {"NEXAR_RANK", "x"}};
  for (const auto& [name, value] : cases) {
    Variables variables = {{"NEXAR_SEED", "h:1"}, {"NEXAR_TOKEN", "nxr1-x"}};
    variables[name] = value;
    const auto plan = plan_in(variables);
    ASSERT_FALSE(plan) << name;
    EXPECT_NE(plan.error().sentence().find(name + " is \"" + value + "\""), std::string::npos) << plan.error().to_string();
  }
}

}  // namespace
}  // namespace nexar::runtime
