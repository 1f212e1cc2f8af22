// The subcommands of `nexar`. Each adds itself to the command line; what it returns from its callback is the exit status.
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

namespace nexar::tool {

// Set by the subcommand that the user chose; run after the whole command line has been understood.
using Action = std::function<int()>;

void add_bench(CLI::App& app, Action& action);
void add_info(CLI::App& app, Action& action);

}  // namespace nexar::tool
