// The command line tool. Exit status: 0 success, 1 the work failed, 2 the command line was not understood.
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "commands.h"
#include "nexar/version.h"
#include "refusal.h"
#include "words.h"

namespace nexar::tool {
namespace {

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
  add_manual(app, action);
  add_examples(app,
               {"nexar doctor                         is this machine fit?", "nexar run -n 4 ./app                 a program as four ranks",
                "nexar bench p2p                      how fast are messages here?"});

  std::vector<std::string> words(argv + 1, argv + argc);
  program = take_program(app, words);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // as CLI11 takes them
  } catch (const CLI::Success& help_or_version) {
    return app.exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "{}\n", refusal(app, error, words));
    return 2;
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
