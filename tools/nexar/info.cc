// `nexar info`: what this build is and what it found on this machine; with --seed, what a world that runs tells of itself.
#include <chrono>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cluster/host_port.h"
#include "cluster/token.h"
#include "commands.h"
#include "info_world.h"
#include "nexar/config.h"
#include "nexar/info.h"
#include "nexar/seed.h"
#include "words.h"

namespace nexar::tool {
namespace {

void print_text(const Info& info) {
  fmt::print("nexar     {}\n", info.version);
  fmt::print("compiler  {}\n", info.compiler);
  fmt::print("cpu       {}, {} {}\n", info.cpu, info.cores, info.cores == 1 ? "core" : "cores");
  fmt::print("features  {}\n", fmt::join(info.cpu_features, " "));
  fmt::print("simd      {} (of {})\n", info.simd, fmt::join(info.simd_targets, ", "));
  fmt::print("crypto    {}\n", info.crypto);
}

void print_json(const Info& info) {
  const nlohmann::ordered_json json = {
      {"version", info.version},
      {"compiler", info.compiler},
      {"cpu", info.cpu},
      {"cores", info.cores},
      {"cpu_features", info.cpu_features},
      {"simd", info.simd},
      {"simd_targets", info.simd_targets},
      {"crypto", info.crypto},
  };
  fmt::print("{}\n", json.dump(2));
}

struct Options {
  bool json = false;
  std::string seed;
  std::chrono::nanoseconds patience = std::chrono::seconds(3);
};

cluster::Token token_from_env() {
  const Config config = Config::from_env().value();
  if (config.token.empty() && config.token_file.empty())
    Result<void>(Error(ErrorCode::kInvalidArgument, "there is no token; set NEXAR_TOKEN or NEXAR_TOKEN_FILE")).value();
  return cluster::Token::parse(config.token.empty() ? read_token_file(config.token_file).value() : config.token).value();
}

int run(const Options& options) {
  if (options.seed.empty()) {
    options.json ? print_json(info()) : print_text(info());
    return 0;
  }
  const WorldInfo world = look_at_world(options.seed, token_from_env(), options.patience).value();
  fmt::print("{}", options.json ? as_json(world) : as_text(world));
  return world.all_answered() ? 0 : 1;
}

}  // namespace

void add_info(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("info", "What this build runs on; with --seed, the ranks, links and counters of a running world");
  auto options = std::make_shared<Options>();
  command->add_flag("--json", options->json, "Print JSON");
  command->add_option("--seed", options->seed, "The seed of a world that runs, or any of its ranks; needs NEXAR_TOKEN or NEXAR_TOKEN_FILE")
      ->type_name("HOST:PORT");
  add_duration(*command, "--timeout", "How long to wait for answers; 3s", [&options = *options](auto value) { options.patience = value; });
  add_examples(*command,
               {"nexar info                                        this build, for people",
                "nexar info --json                                 for a bug report or a script",
                "NEXAR_TOKEN_FILE=token nexar info --seed a:7070   the world of the seed at a, or of the rank that listens there"});
  command->callback([options, &action] {
    if (!options->seed.empty())
      if (const auto place = cluster::parse_host_port(options->seed); !place || place->port == 0)
        throw CLI::ValidationError("--seed", fmt::format("'{}' is no address with a port", options->seed));
    action = [options] { return run(*options); };
  });
}

}  // namespace nexar::tool
