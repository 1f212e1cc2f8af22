#include "cluster/launcher_environment.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace nexar::cluster {
namespace {

using Variables = std::map<std::string, std::string>;

Result<LauncherEnvironment> recognise_in(const Variables& variables) {
  return recognise([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

Variables operator+(Variables a, const Variables& b) {
  for (const auto& [name, value] : b) a[name] = value;
  return a;
}

const Variables kToken = {{"NEXAR_TOKEN", "nxr1-x"}};
const Variables kTokenFile = {{"NEXAR_TOKEN_FILE", "/t"}};
const Variables kNexarRun = {
    {"NEXAR_RANK", "2"}, {"NEXAR_WORLD_SIZE", "4"}, {"NEXAR_LOCAL_RANK", "1"}, {"NEXAR_LOCAL_SIZE", "2"}, {"NEXAR_SEED", "h:1"}};
const Variables kTorch = {{"RANK", "3"},        {"WORLD_SIZE", "8"},     {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"},
                          {"MASTER_ADDR", "m"}, {"MASTER_PORT", "29500"}};
const Variables kMpi = {
    {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}};
const Variables kSlurmStep = {{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "6"}, {"SLURM_LOCALID", "1"}, {"SLURM_STEP_NODELIST", "n[07-09,12]"}};

TEST(LauncherEnvironment, IsRecognisedByItsVariables) {
  const std::vector<std::pair<Variables, LauncherEnvironment>> cases = {
      {kToken + Variables{{"NEXAR_SEED", "h:1"}}, {Launcher::kNone, {}, {}, {}, {}, "h:1", false, ""}},
      {kToken + kNexarRun, {Launcher::kNexar, 2, 4, 1, 2, "h:1", false, ""}},
      {kToken + kNexarRun + Variables{{"NEXAR_RANK", "0"}}, {Launcher::kNexar, 0, 4, 1, 2, "h:1", false, ""}},
      {kToken + Variables{{"NEXAR_RANK", "7"}, {"NEXAR_SEED", "h:1"}}, {Launcher::kNexar, 7, {}, {}, {}, "h:1", false, ""}},
      {kTokenFile + kTorch, {Launcher::kTorchrun, 3, 8, 1, 2, "m:29500", false, ""}},
      {kToken + kTorch + Variables{{"MASTER_ADDR", "fd00::1"}}, {Launcher::kTorchrun, 3, 8, 1, 2, "[fd00::1]:29500", false, ""}},
      {kToken + kTorch + Variables{{"NEXAR_SEED", "h:1"}}, {Launcher::kTorchrun, 3, 8, 1, 2, "h:1", false, ""}},
      {kToken + kTorch + Variables{{"RANK", "0"}, {"NEXAR_SEED_FILE", "/s"}}, {Launcher::kTorchrun, 0, 8, 1, 2, "m:29500", true, "/s"}},
      {kToken + kMpi + Variables{{"NEXAR_SEED", "h:1"}}, {Launcher::kOpenMpi, 1, 2, 0, 1, "h:1", false, ""}},
      {kToken + kMpi + Variables{{"NEXAR_SEED", "h:1"}, {"OMPI_COMM_WORLD_RANK", "0"}, {"NEXAR_SEED_FILE", "/s"}},
       {Launcher::kOpenMpi, 0, 2, 0, 1, "h:1", true, "/s"}},
      {kToken + kSlurmStep, {Launcher::kSlurm, 5, 6, 1, {}, "n07:7070", false, ""}},
      {kToken + kSlurmStep + Variables{{"NEXAR_SEED_PORT", "9"}}, {Launcher::kSlurm, 5, 6, 1, {}, "n07:9", false, ""}},
      {kToken + Variables{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"SLURM_JOB_NODELIST", "a,b"}, {"NEXAR_SEED_FILE", "/s"}},
       {Launcher::kSlurm, 0, 1, {}, {}, "a:7070", true, "/s"}},
      // Several at once: ours, then torchrun, then Open MPI, then Slurm.
      {kToken + kNexarRun + kTorch + kMpi + kSlurmStep, {Launcher::kNexar, 2, 4, 1, 2, "h:1", false, ""}},
      {kToken + kTorch + kMpi + kSlurmStep, {Launcher::kTorchrun, 3, 8, 1, 2, "m:29500", false, ""}},
      {kToken + kMpi + kSlurmStep + Variables{{"NEXAR_SEED", "h:1"}}, {Launcher::kOpenMpi, 1, 2, 0, 1, "h:1", false, ""}},
      // A variable of a common name alone says nothing.
      {kToken + Variables{{"NEXAR_SEED", "h:1"}, {"RANK", "general"}}, {Launcher::kNone, {}, {}, {}, {}, "h:1", false, ""}},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto found = recognise_in(cases[i].first);
    ASSERT_TRUE(found) << "case " << i << ": " << found.error().to_string();
    EXPECT_EQ(*found, cases[i].second) << "case " << i << ": " << found->seed;
  }
}

TEST(LauncherEnvironment, NamesAllThatIsMissingAtOnce) {
  const std::vector<std::pair<Variables, std::vector<std::string>>> cases = {
      {{}, {"NEXAR_SEED", "NEXAR_TOKEN or NEXAR_TOKEN_FILE"}},
      {{{"NEXAR_RANK", "1"}}, {"nexar run", "NEXAR_SEED", "NEXAR_TOKEN or NEXAR_TOKEN_FILE"}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}},
       {"torchrun", "MASTER_ADDR", "MASTER_PORT", "NEXAR_TOKEN or NEXAR_TOKEN_FILE", "NEXAR_SEED_FILE (rank 0 runs the seed)"}},
      {{{"TORCHELASTIC_RUN_ID", "x"}}, {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "NEXAR_TOKEN"}},
      {{{"OMPI_COMM_WORLD_RANK", "0"}}, {"Open MPI", "OMPI_COMM_WORLD_SIZE", "NEXAR_SEED,", "NEXAR_TOKEN", "NEXAR_SEED_FILE"}},
      {{{"SLURM_PROCID", "0"}}, {"Slurm", "SLURM_NTASKS", "SLURM_STEP_NODELIST (or NEXAR_SEED)", "NEXAR_TOKEN", "NEXAR_SEED_FILE"}},
      {{{"NEXAR_SEED", ""}, {"NEXAR_TOKEN", ""}}, {"NEXAR_SEED", "NEXAR_TOKEN"}},
  };
  for (const auto& [variables, named] : cases) {
    const auto found = recognise_in(variables);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code(), ErrorCode::kInvalidArgument);
    for (const std::string& name : named)
      EXPECT_NE(found.error().sentence().find(name), std::string::npos) << name << " in " << found.error().sentence();
  }
}

TEST(LauncherEnvironment, NamesAVariableThatIsNoNumberAndItsValue) {
  const std::vector<std::pair<Variables, std::string>> cases = {
      {kToken + kNexarRun + Variables{{"NEXAR_RANK", "two"}}, "NEXAR_RANK is \"two\""},
      {kToken + kNexarRun + Variables{{"NEXAR_RANK", "-1"}}, "NEXAR_RANK is \"-1\""},
      {kToken + kNexarRun + Variables{{"NEXAR_RANK", "4"}}, "NEXAR_RANK is 4, but NEXAR_WORLD_SIZE is 4"},
      {kToken + kNexarRun + Variables{{"NEXAR_WORLD_SIZE", "0"}}, "NEXAR_WORLD_SIZE is \"0\""},
      {kToken + kTorch + Variables{{"WORLD_SIZE", "99999999999"}}, "WORLD_SIZE is \"99999999999\""},
      {kToken + kTorch + Variables{{"MASTER_PORT", "65536"}}, "MASTER_PORT is \"65536\""},
      {kToken + kSlurmStep + Variables{{"NEXAR_SEED_PORT", "http"}}, "NEXAR_SEED_PORT is \"http\""},
      {kToken + kSlurmStep + Variables{{"SLURM_STEP_NODELIST", "n["}}, "SLURM_STEP_NODELIST: \"n[\""},
      {kToken + kSlurmStep + Variables{{"SLURM_LOCALID", "x"}}, "SLURM_LOCALID is \"x\""},
  };
  for (const auto& [variables, sentence] : cases) {
    const auto found = recognise_in(variables);
    ASSERT_FALSE(found) << sentence;
    EXPECT_EQ(found.error().sentence().find(sentence), 0u) << found.error().sentence();
  }
}

TEST(SlurmHosts, BeginWithTheFirstOfTheFirstRange) {
  const std::vector<std::pair<std::string, std::string>> cases = {{"a", "a"},
                                                                  {"a,b", "a"},
                                                                  {"a[01-03,7],b", "a01"},
                                                                  {"a[7]", "a7"},
                                                                  {"node-[100-200]", "node-100"},
                                                                  {"a[1-2]b", "a1b"},
                                                                  {"r[1-2]n[04-9]", "r1n04"},
                                                                  {"a[3,5],c[1-2]", "a3"},
                                                                  {"a.b.c,d", "a.b.c"}};
  for (const auto& [list, host] : cases) {
    const auto first = first_slurm_host(list);
    ASSERT_TRUE(first) << list << first.error().to_string();
    EXPECT_EQ(*first, host) << list;
  }
  for (const char* list : {"", ",a", "[", "a[", "a[]", "a[x]", "a[1", "a[-1]", "a]", "a[1x-2]", "a b"})
    EXPECT_FALSE(first_slurm_host(list)) << list;
}

}  // namespace
}  // namespace nexar::cluster
