// What the command line is made of, as help, manual pages and completion show it.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace nexar::tool {

// Sets what stands under the help of a command. Each example is a command line, and after two spaces or more what it does.
void add_examples(CLI::App& command, const std::vector<std::string>& examples);

// Accepts sizes such as 8, 64K and 1MiB, not 0.
CLI::Validator is_size();

// The same and ranges of them: 8-64M, 8-64M*4.
CLI::Validator is_size_or_range();

// The subcommands that are shown, without groups of options; those of all levels below, depth first.
std::vector<const CLI::App*> subcommands_of(const CLI::App& command);
std::vector<const CLI::App*> all_commands_of(const CLI::App& command);

// The options that are shown, those in groups included.
std::vector<const CLI::Option*> options_of(const CLI::App& command);

// `nexar bench p2p`.
std::string full_name(const CLI::App& command);

// `--bytes TEXT ...`, and `-h,--help` for one without a value.
std::string left_side(const CLI::Option& option);

}  // namespace nexar::tool
