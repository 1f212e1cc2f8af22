#include "runtime/join_environment.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"
#include "cluster/host_port.h"
#include "cluster/launcher_environment.h"

namespace nexar::runtime {
namespace {

Error invalid(std::string sentence) { return {ErrorCode::kInvalidArgument, std::move(sentence)}; }

Result<std::vector<std::string>> split(const std::string& name, const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end == begin)
      return invalid(fmt::format("{} is \"{}\"; accepted are interfaces, addresses and networks with commas between", name, text));
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

Result<JoinPlan> plan_join(const Config::Lookup& lookup) {
  const Result<cluster::LauncherEnvironment> launcher = cluster::recognise(lookup);
  if (!launcher) return launcher.error();
  Result<Config> config = Config::from_variables(lookup);
  if (!config) return config.error();

  JoinPlan plan;
  plan.options.config = *std::move(config);
  plan.options.seed = launcher->seed;
  plan.options.rank = launcher->rank;
  if (const auto port = lookup("NEXAR_PORT")) plan.options.port = *port;
  if (const auto names = lookup("NEXAR_INTERFACES")) {
    Result<std::vector<std::string>> interfaces = split("NEXAR_INTERFACES", *names);
    if (!interfaces) return interfaces.error();
    plan.options.interfaces = *std::move(interfaces);
  }
  if (const auto text = lookup("NEXAR_JOIN_TIMEOUT")) {
    const std::optional<base::Duration> deadline = base::parse_duration(*text);
    if (!deadline || *deadline <= base::Duration::zero())
      return invalid(fmt::format("NEXAR_JOIN_TIMEOUT is \"{}\"; accepted is a duration such as 500ms, 30s or 10min", *text));
    plan.options.deadline = *deadline;
  }
  const Result<cluster::HostPort> seed = cluster::parse_host_port(launcher->seed);
  if (!seed) return seed.error();
  if (launcher->runs_seed) {
    // With IPv6, which takes IPv4 as well, or with IPv4 alone on a host that has nothing else.
    const std::vector<std::string> listen = {fmt::format("[::]:{}", seed->port), fmt::format("0.0.0.0:{}", seed->port)};
    plan.seed = OwnSeed{launcher->seed_file, listen, launcher->size.value_or(1)};
  }
  return plan;
}

}  // namespace nexar::runtime
