// Node::from_env: a rank of the world that the environment names.
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "nexar/node.h"
#include "nexar/seed.h"
#include "runtime/join_environment.h"
#include "runtime/node_core.h"

namespace nexar {
namespace {

std::optional<std::string> variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

// The seed of a launcher that has none: rank 0's own.
Result<std::optional<Seed>> start_seed(const runtime::JoinPlan& plan) {
  if (!plan.seed) return std::optional<Seed>();
  std::optional<Error> first_failure;
  for (const std::string& listen : plan.seed->listen) {
    Result<SeedCredentials> credentials = SeedCredentials::read(plan.seed->file);
    if (!credentials) return std::move(credentials).error();
    const JoinOptions& options = plan.options;
    Result<Seed> seed = Seed::start({listen, plan.seed->world, *std::move(credentials), options.deadline, options.config.log});
    if (seed) return std::optional<Seed>(*std::move(seed));
    if (!first_failure) first_failure = std::move(seed).error();
  }
  return *first_failure;
}

}  // namespace

Result<Node> Node::from_env() {
  const Result<runtime::JoinPlan> plan = runtime::plan_join(variable);
  if (!plan) return plan.error();
  Result<std::optional<Seed>> seed = start_seed(*plan);
  if (!seed) return std::move(seed).error();
  Result<Node> node = join(plan->options);
  if (node && *seed) node->core_->keep(**std::move(seed));
  return node;
}

}  // namespace nexar
