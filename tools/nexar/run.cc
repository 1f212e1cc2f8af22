// `nexar run`: a program as the ranks of a world; and `nexar _rank`, its far end on another host.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/units.h"
#include "commands.h"
#include "launch/far_end.h"
#include "launch/hosts.h"
#include "launch/launch.h"
#include "words.h"

namespace nexar::tool {

void add_duration(CLI::App& command, const std::string& name, const std::string& help, std::function<void(std::chrono::nanoseconds)> take) {
  const auto parse = [take = std::move(take), name](const std::string& text) {
    const auto value = base::parse_duration(text);
    if (!value) throw CLI::ValidationError(name, fmt::format("\"{}\" is no duration such as 500ms or 10s", text));
    take(*value);
  };
  command.add_option_function<std::string>(name, parse, help)->type_name("DURATION");
}

void add_launch_options(CLI::App& command, launch::LaunchOptions& options) {
  command.add_option("-n", options.world, "Ranks; without it one for each slot of the hosts")->check(CLI::Range(1, launch::kWorldMax));
  command.add_option("--hosts", options.hosts, "Hosts with their slots: a,b:2");
  command.add_flag("--bind", options.bind, "Run each rank on its share of its host's cores and on no other");
  command.add_option("--ssh", options.ssh, "What runs a command on a host: COMMAND HOST WORDS...")->capture_default_str();
  command.add_option("--nexar", options.nexar, "Where this tool is on the hosts; without it where it is here");
  command.add_option("--listen", options.listen, "The address, with or without a port, at which the ranks reach the seed");
  add_duration(command, "--timeout", "End the ranks after this time, with status 124", [&options](auto value) { options.timeout = value; });
  add_duration(command, "--grace", "Between asking a rank to end and killing it; 5s", [&options](auto value) { options.grace = value; });
  add_duration(command, "--formation", "How long after the first rank the last one may join; 60s",
               [&options](auto value) { options.formation = value; });
}

int launch_self(launch::LaunchOptions options, const std::string& name, int world, const std::vector<std::string>& words) {
  options.name = name;
  options.prefix = false;
  if (options.world == 0 && options.hosts.empty()) options.world = world;
  options.program = {std::filesystem::read_symlink("/proc/self/exe").string()};
  options.program.insert(options.program.end(), words.begin(), words.end());
  return launch::launch(options);
}

void add_run(CLI::App& app, Action& action, const std::vector<std::string>& program) {
  auto* run = app.add_subcommand("run", "Runs a program as the ranks of a world: nexar run -n 4 [--] PROGRAM ARGUMENTS...");
  auto options = std::make_shared<launch::LaunchOptions>();
  add_launch_options(*run, *options);
  run->add_flag("!--no-prefix", options->prefix, "Show what ranks write without their numbers");
  add_examples(
      *run, {"nexar run -n 4 ./app --its-own-options    four ranks here", "nexar run --hosts a,b:2 ./app             three ranks, by ssh",
             "nexar run -n 2 --bind ./app               each on its half of the cores",
             "nexar run -n 2 --timeout 10min -- ./app   not longer than that"});
  run->callback([options, &action, &program] {
    options->program = program;
    action = [options] { return launch::launch(*options); };
  });

  auto* rank = app.add_subcommand("_rank")->group("");
  rank->callback([&action] { action = [] { return launch::run_far_end(); }; });
}

std::vector<std::string> take_program(const CLI::App& app, std::vector<std::string>& words) {
  if (words.empty() || words[0] != "run") return {};
  const CLI::App* run = app.get_subcommand("run");
  std::size_t at = 1;
  while (at < words.size() && words[at].size() > 1 && words[at][0] == '-' && words[at] != "--") {
    const CLI::Option* option = run->get_option_no_throw(words[at]);
    at += option != nullptr && option->get_items_expected_min() != 0 ? 2 : 1;  // --name=value, -n4 and flags are one word
  }
  at = std::min(at, words.size());
  const auto program = words.begin() + static_cast<std::ptrdiff_t>(at < words.size() && words[at] == "--" ? at + 1 : at);
  std::vector<std::string> taken(program, words.end());
  words.resize(at);
  return taken;
}

}  // namespace nexar::tool
