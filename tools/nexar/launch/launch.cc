#include "launch/launch.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>

#include <unistd.h>

#include <fmt/format.h>

#include "launch/binding.h"
#include "launch/child.h"
#include "launch/embedded_seed.h"
#include "launch/hosts.h"
#include "launch/keeper.h"
#include "launch/remote_rank.h"
#include "launch/signals.h"
#include "launch/supervisor.h"

namespace nexar::launch {
namespace {

constexpr int kBadOptions = 2;

using Variables = std::map<std::string, std::string>;

// What makes a process a rank is ours to say; a launcher's own are those of another world.
constexpr std::array<std::string_view, 8> kOurs = {"NEXAR_SEED", "NEXAR_TOKEN",      "NEXAR_TOKEN_FILE", "NEXAR_SEED_FILE",
                                                   "NEXAR_RANK", "NEXAR_WORLD_SIZE", "NEXAR_LOCAL_RANK", "NEXAR_LOCAL_SIZE"};

bool is_ours(std::string_view name) { return std::find(kOurs.begin(), kOurs.end(), name) != kOurs.end(); }

// Those of this process, without what is ours to say; only NEXAR_ ones when `only_nexar`.
Variables inherited(bool only_nexar) {
  Variables variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || is_ours(text.substr(0, equals))) continue;
    if (only_nexar && !text.starts_with("NEXAR_")) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

// Everything that is known before the first process is started.
struct Plan {
  std::vector<Place> places;
  std::vector<std::string> ssh;
  FoundProgram program;  // that is run here: the ranks' own, or the remote shell
  std::string nexar;     // the tool's path at the far ends
  std::string directory;
  bool is_remote = false;
  std::vector<Cores> cores;  // of each rank that is bound here
};

struct Problem {
  std::string sentence;
  int status = kBadOptions;
};

std::string own_path() {
  std::error_code problem;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", problem);
  return problem ? "nexar" : path.string();
}

// A remote shell may or may not hand the command line to a shell: words that mean the same to both need no quoting.
bool is_plain(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._-+@%:,").find(c) != std::string_view::npos;
  });
}

std::optional<Problem> prepare(const LaunchOptions& options, Plan& plan) {
  std::vector<HostSlots> hosts;
  plan.is_remote = !options.hosts.empty();
  if (plan.is_remote) {
    Result<std::vector<HostSlots>> parsed = parse_hosts(options.hosts);
    if (!parsed) return Problem{parsed.error().sentence()};
    hosts = *std::move(parsed);
  }
  Result<std::vector<Place>> places = place_ranks(options.world, hosts);
  if (!places) return Problem{places.error().sentence()};
  plan.places = *std::move(places);
  if (options.program.empty()) return Problem{"a program is missing"};

  std::error_code no_directory;
  plan.directory = std::filesystem::current_path(no_directory).string();
  if (plan.is_remote) {
    Result<std::vector<std::string>> ssh = split_words(options.ssh);
    if (!ssh) return Problem{"--ssh: " + ssh.error().sentence()};
    plan.ssh = *std::move(ssh);
    plan.nexar = options.nexar.empty() ? own_path() : options.nexar;
    if (!is_plain(plan.nexar))
      return Problem{fmt::format("--nexar: \"{}\" has characters that a remote shell may take for its own", plan.nexar)};
  }
  plan.program = find_program(plan.is_remote ? plan.ssh.at(0) : options.program.at(0));
  if (plan.program.file.empty()) return Problem{plan.program.problem, plan.program.status};
  if (options.bind && !plan.is_remote) {
    Result<std::vector<Cores>> cores = share_cores_here(static_cast<int>(plan.places.size()));
    if (!cores) return Problem{"--bind: " + cores.error().sentence(), 1};
    plan.cores = *std::move(cores);
  }
  return std::nullopt;
}

Result<RankCommand> command_for(int rank, const Plan& plan, const LaunchOptions& options, const Variables& rendezvous) {
  const Place& place = plan.places[static_cast<std::size_t>(rank)];
  Variables variables = inherited(plan.is_remote);
  for (const auto& [name, value] : rendezvous) variables[name] = value;
  variables["NEXAR_RANK"] = std::to_string(rank);
  variables["NEXAR_WORLD_SIZE"] = std::to_string(plan.places.size());
  variables["NEXAR_LOCAL_RANK"] = std::to_string(place.local_rank);
  variables["NEXAR_LOCAL_SIZE"] = std::to_string(place.local_size);

  RankCommand command{rank, {plan.program.file, options.program, {}}, place.host, "", plan.is_remote, {}};
  if (!plan.is_remote) {
    if (options.bind) command.cores = plan.cores[static_cast<std::size_t>(rank)];
    for (const auto& [name, value] : variables) command.command.environment.push_back(name + "=" + value);
    return command;
  }
  command.command.words = plan.ssh;
  command.command.words.insert(command.command.words.end(), {place.host, plan.nexar, "_rank"});
  for (const auto& [name, value] : inherited(false)) command.command.environment.push_back(name + "=" + value);
  RankRequest wanted{options.program, plan.directory, variables, rank == 0};
  if (options.bind) wanted.binding = Binding{place.local_rank, place.local_size};
  Result<std::string> request = encode(wanted);
  if (!request) return request.error();
  command.request = *std::move(request);
  return command;
}

bool wants_colour() {
  const char* no = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) == 1 && (no == nullptr || *no == '\0');
}

int fail(const LaunchOptions& options, const std::string& problem, int status) {
  fmt::print(stderr, "{}: {}\n", options.name, problem);
  return status;
}

}  // namespace

int launch(const LaunchOptions& options) {
  Plan plan;
  if (const auto problem = prepare(options, plan)) return fail(options, problem->sentence, problem->status);
  const Result<Signals> signals = Signals::take();
  if (!signals) return fail(options, signals.error().sentence(), 1);
  Result<Keeper> keeper = Keeper::start();
  if (!keeper) return fail(options, keeper.error().sentence(), 1);

  Result<EmbeddedSeed> seed = start_seed(options.listen, plan.places, options.formation);
  if (!seed) return fail(options, seed.error().to_string(), seed.error().code() == ErrorCode::kInvalidArgument ? kBadOptions : 1);
  const Variables rendezvous = {{"NEXAR_SEED", seed->address}, {"NEXAR_TOKEN", seed->token}};
  Supervisor supervisor({options.name, {options.prefix, wants_colour()}, options.grace, options.timeout}, *signals, *keeper);
  const int world = static_cast<int>(plan.places.size());
  for (int rank = 0; rank < world; ++rank) {
    const Result<RankCommand> command = command_for(rank, plan, options, rendezvous);
    if (!command) return fail(options, command.error().sentence(), kBadOptions);
    const Result<bool> started = supervisor.start(*command);
    if (!started && started.error().code() == ErrorCode::kIo) return fail(options, started.error().sentence(), kNotExecutable);
    if (!started) return fail(options, fmt::format("rank {}: {}", rank, started.error().sentence()), 1);
    if (!*started) return std::max(supervisor.run(), 1);  // some were never there: no success
  }
  return supervisor.run();
}

}  // namespace nexar::launch
