// `nexar info`: what this build is and what it found on this machine.
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "nexar/info.h"
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

}  // namespace

void add_info(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("info", "Version, CPU, and what reductions and encryption run on");
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "Print JSON");
  add_examples(*command, {"nexar info           for people", "nexar info --json    for a bug report or a script"});
  command->callback([as_json, &action] {
    action = [as_json] {
      *as_json ? print_json(info()) : print_text(info());
      return 0;
    };
  });
}

}  // namespace nexar::tool
