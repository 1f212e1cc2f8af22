#include "refusal.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "words.h"

namespace nexar::tool {
namespace {

// The command that the words lead to, and those that are not part of the way.
struct Reading {
  const CLI::App* command;
  std::vector<std::string> rest;
};

Reading read(const CLI::App& app, const std::vector<std::string>& words) {
  Reading reading{&app, {}};
  for (const std::string& word : words) {
    const auto next = reading.command->get_subcommands([&](const CLI::App* one) { return one->get_name() == word; });
    if (next.empty() || !reading.rest.empty())
      reading.rest.push_back(word);
    else
      reading.command = next.front();
  }
  return reading;
}

// `--name=value` is --name, and -n4 is -n.
std::string name_in(const std::string& word) { return word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2); }

std::optional<std::string> unknown_option(const Reading& reading) {
  for (const std::string& word : reading.rest) {
    if (word == "--") return std::nullopt;
    const bool is_option = word.size() > 1 && word[0] == '-' && std::isdigit(static_cast<unsigned char>(word[1])) == 0;
    if (is_option && reading.command->get_option_no_throw(name_in(word)) == nullptr) return word;
  }
  return std::nullopt;
}

std::string accepted_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options_of(command))
    names.push_back(option->get_lnames().empty() ? option->get_name() : "--" + option->get_lnames()[0]);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string accepted_commands(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* one : subcommands_of(command)) names.push_back(one->get_name());
  return fmt::format("{}", fmt::join(names, ", "));
}

// The option that a message of CLI11 speaks of: the one with the longest name in it.
const CLI::Option* option_in(const CLI::App& command, const std::string& message) {
  const CLI::Option* found = nullptr;
  for (const CLI::Option* option : options_of(command)) {
    const std::string name = option->get_name();
    if (message.find(name) != std::string::npos && (found == nullptr || name.size() > found->get_name().size())) found = option;
  }
  return found;
}

}  // namespace

std::string refusal(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& words) {
  const Reading reading = read(app, words);
  const CLI::App& command = *reading.command;
  const std::string who = full_name(command);
  if (const auto option = unknown_option(reading))
    return fmt::format("{}: unknown option {}; accepted are {}", who, *option, accepted_options(command));
  if (!subcommands_of(command).empty()) {
    const std::string problem = reading.rest.empty() ? "a command is missing" : "unknown command " + reading.rest.front();
    return fmt::format("{}: {}; accepted are {}", who, problem, accepted_commands(command));
  }
  std::string problem = error.what();
  std::replace(problem.begin(), problem.end(), '\n', ' ');
  if (const CLI::Option* option = option_in(command, problem))
    return fmt::format("{}: {}; accepted is {}: {}", who, problem, left_side(*option), option->get_description());
  return fmt::format("{}: {}; `{} --help` shows what is accepted", who, problem, who);
}

}  // namespace nexar::tool
