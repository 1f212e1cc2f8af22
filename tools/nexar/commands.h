// The subcommands of `nexar`. Each adds itself to the command line; what it returns from its callback is the exit status.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "launch/launch.h"

namespace nexar::tool {

// Set by the subcommand that the user chose; run after the whole command line has been understood.
using Action = std::function<int()>;

void add_bench(CLI::App& app, Action& action);
void add_bench_collectives(CLI::App& bench, Action& action);  // commands of `bench`
void add_bench_join(CLI::App& bench, Action& action);
void add_bench_rpc(CLI::App& bench, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_info(CLI::App& app, Action& action);
void add_manual(CLI::App& app, Action& action);

// `program` is what `run` starts; it is there when the action runs.
void add_run(CLI::App& app, Action& action, const std::vector<std::string>& program);

// Cuts the program and its arguments off the words of `nexar run`, so that its options are not taken for ours.
std::vector<std::string> take_program(const CLI::App& app, std::vector<std::string>& words);

// `nexar seed` and `nexar token`.
void add_seed(CLI::App& app, Action& action);

// An option that is a time, such as 500ms.
void add_duration(CLI::App& command, const std::string& name, const std::string& help, std::function<void(std::chrono::nanoseconds)> take);

// The options of a command that starts ranks.
void add_launch_options(CLI::App& command, launch::LaunchOptions& options);

// Runs this tool again with these words, as the ranks of a world: `world` of them where the options say nothing. What they write is shown
// as it is. `name` is what the launcher calls itself.
int launch_self(launch::LaunchOptions options, const std::string& name, int world, const std::vector<std::string>& words);

}  // namespace nexar::tool
