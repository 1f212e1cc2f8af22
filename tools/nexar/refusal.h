// What is said of a command line that was not understood: one line that names what is wrong and what is accepted.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace nexar::tool {

// `words` are those of the command line, without the program that `run` starts.
std::string refusal(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& words);

}  // namespace nexar::tool
