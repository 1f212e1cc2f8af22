// The command line tool. Exit status: 0 success, 1 the work failed, 2 the command line was not understood.
#include <algorithm>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "commands.h"
#include "nexar/version.h"

namespace nexar::tool {
namespace {

// One line that says what was wrong and where to look.
int refuse(const std::string& problem) {
  fmt::print(stderr, "nexar: {}; `nexar --help` shows what is accepted\n", problem);
  return 2;
}

// CLI11 says of any first word that it does not know only that a command is missing.
std::string problem_of(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::RequiredError)) return error.what();
  if (argc < 2) return "a command is missing";
  const std::string word = argv[1];
  const auto commands = app.get_subcommands([&](const CLI::App* command) { return command->get_name() == word; });
  if (!commands.empty()) return fmt::format("{}: {}", word, error.what());
  return word.starts_with("-") ? "unknown option " + word : "unknown command " + word;
}

int run(int argc, char** argv) {
  CLI::App app("nexar: a distributed runtime. One tool for everything that is not a program of your own.", "nexar");
  app.set_version_flag("--version", NEXAR_VERSION);
  app.require_subcommand(1);

  Action action;
  add_bench(app, action);
  add_doctor(app, action);
  add_info(app, action);
  std::vector<std::string> program;
  add_run(app, action, program);
  add_seed(app, action);

  try {
    std::vector<std::string> words(argv + 1, argv + argc);
    program = take_program(app, words);
    std::reverse(words.begin(), words.end());  // as CLI11 takes them
    app.parse(std::move(words));
  } catch (const CLI::Success& help_or_version) {
    return app.exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    return refuse(problem_of(app, error, argc, argv));
  }
  return action();
}

}  // namespace
}  // namespace nexar::tool

int main(int argc, char** argv) {
  try {
    return nexar::tool::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "nexar: {}\n", error.what());
    return 1;
  }
}
