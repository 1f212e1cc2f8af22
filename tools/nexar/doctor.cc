// `nexar doctor`: looks for what goes wrong in practice, on this host and on the way to others, and says how to mend it.
#include <cstdlib>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "commands.h"
#include "doctor/checks.h"
#include "doctor/report.h"
#include "words.h"

namespace nexar::tool {
namespace {

using namespace doctor;

constexpr Findings (*kLocalChecks[])(const Surroundings&) = {
    check_udp_buffers, check_offload, check_interfaces,         check_firewall, check_memory,
    check_open_files,  check_cpu,     check_congestion_control, check_clock,
};

struct Options {
  Surroundings here;
  bool json = false;
  bool strict = false;
};

Findings examine(const Surroundings& here) {
  Findings all;
  const auto add = [&](const Findings& found) { all.insert(all.end(), found.begin(), found.end()); };
  for (const auto check : kLocalChecks) add(check(here));
  if (here.seed.empty()) return all;
  const Findings seed = check_seed(here);
  add(seed);
  const bool answers = seed.size() > 1 && count({seed[1]}, Verdict::kWrong) == 0;
  if (answers) add(check_world(here));
  return all;
}

int run(Options& options) {
  options.here.config = Config::from_env().value();
  const Findings findings = examine(options.here);
  fmt::print("{}", options.json ? as_json(findings) : as_text(findings));
  const bool bad = count(findings, Verdict::kWrong) > 0 || (options.strict && count(findings, Verdict::kWarning) > 0);
  return bad ? 1 : 0;
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("doctor", "Looks for what goes wrong in practice, and says how to mend it");
  auto options = std::make_shared<Options>();
  Surroundings& here = options->here;
  command->add_option("--seed", here.seed, "A seed: also examine the way to it and to the other doctors of its world; needs the token")
      ->type_name("HOST:PORT")
      ->envname("NEXAR_SEED");
  add_duration(*command, "--timeout", "How long to wait for the seed and the other doctors; 30s",
               [&here](auto value) { here.patience = value; });
  command->add_option("--world", here.world, "Ranks of the worlds that this host is to be part of")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command->add_option("--port", here.port, "What the firewall lets pass")->type_name("PORT|FIRST-LAST")->envname("NEXAR_PORT");
  command->add_option("--interfaces", here.interfaces, "Interfaces, addresses or networks that peers are told")
      ->type_name("NAMES")
      ->delimiter(',')
      ->envname("NEXAR_INTERFACES");
  command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--strict", options->strict, "Status 1 also for warnings");
  add_examples(*command, {"nexar doctor                                   this host alone",
                          "nexar seed --listen 0.0.0.0:7070 --world 2 --token-file token      on host a, then on a and b:",
                          "NEXAR_TOKEN_FILE=token nexar doctor --seed a:7070                  both hosts and the way between"});
  command->callback([options, &action] {
    if (const auto ports = parse_ports(options->here.port); !ports) throw CLI::ValidationError("--port", ports.error().sentence());
    action = [options] { return run(*options); };
  });
}

}  // namespace nexar::tool
