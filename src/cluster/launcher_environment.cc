#include "cluster/launcher_environment.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"

namespace nexar::cluster {
namespace {

// The variables of one launcher, under whatever names it gives them.
struct Names {
  Launcher launcher;
  const char* told_by;  // in errors
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};

constexpr Names kNexar = {Launcher::kNexar, "nexar run", "NEXAR_RANK", "NEXAR_WORLD_SIZE", "NEXAR_LOCAL_RANK", "NEXAR_LOCAL_SIZE"};
constexpr Names kTorchrun = {Launcher::kTorchrun, "torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Names kOpenMpi = {Launcher::kOpenMpi,           "Open MPI",
                            "OMPI_COMM_WORLD_RANK",       "OMPI_COMM_WORLD_SIZE",
                            "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Names kSlurm = {Launcher::kSlurm, "Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr};

// Reads variables and remembers the first that is wrong and all that are missing.
class Reader {
 public:
  explicit Reader(const Config::Lookup& lookup) : lookup_(lookup) {}

  // A variable that is set to nothing counts as not set.
  std::optional<std::string> find(const std::string& name) const {
    std::optional<std::string> value = lookup_(name);
    return value && !value->empty() ? value : std::nullopt;
  }
  bool has(const char* name) const { return find(name).has_value(); }

  std::optional<int> number(const char* name, bool required, int least = 0, int most = std::numeric_limits<int>::max()) {
    if (name == nullptr) return std::nullopt;
    const std::optional<std::string> text = find(name);
    if (!text) {
      if (required) miss(name);
      return std::nullopt;
    }
    const std::optional<std::uint64_t> value = base::parse_number(*text);
    if (value && *value >= static_cast<std::uint64_t>(least) && *value <= static_cast<std::uint64_t>(most)) return static_cast<int>(*value);
    refuse(fmt::format("{} is \"{}\"; it must be a whole number from {} to {}", name, *text, least, most));
    return std::nullopt;
  }

  void miss(std::string what) { missing_.push_back(std::move(what)); }
  void refuse(std::string sentence) {
    if (wrong_.empty()) wrong_ = std::move(sentence);
  }

  std::optional<Error> problem(const char* told_by) const {
    if (!wrong_.empty()) return Error(ErrorCode::kInvalidArgument, wrong_);
    if (missing_.empty()) return std::nullopt;
    const std::string by = told_by != nullptr ? fmt::format(" (started by {})", told_by) : "";
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("the environment{} lacks {}", by, fmt::join(missing_, missing_.size() == 2 ? " and " : ", ")));
  }

 private:
  const Config::Lookup& lookup_;
  std::vector<std::string> missing_;
  std::string wrong_;
};

// A host with its port; an IPv6 address gets brackets.
std::string host_port(const std::string& host, int port) {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

const Names* launcher_of(const Reader& reader) {
  if (reader.has(kNexar.rank)) return &kNexar;
  // Names as plain as these may have another origin; the two together hardly.
  if (reader.has("TORCHELASTIC_RUN_ID") || (reader.has(kTorchrun.rank) && (reader.has(kTorchrun.size) || reader.has("MASTER_ADDR"))))
    return &kTorchrun;
  if (reader.has(kOpenMpi.rank)) return &kOpenMpi;
  if (reader.has(kSlurm.rank)) return &kSlurm;
  return nullptr;
}

std::string torchrun_seed(Reader& reader) {
  const std::optional<std::string> host = reader.find("MASTER_ADDR");
  if (!host) reader.miss("MASTER_ADDR");
  const std::optional<int> port = reader.number("MASTER_PORT", true, 1, 65535);
  return host && port ? host_port(*host, *port) : "";
}

std::string slurm_seed(Reader& reader) {
  const int port = reader.number("NEXAR_SEED_PORT", false, 1, 65535).value_or(kDefaultSeedPort);
  const std::optional<std::string> step = reader.find("SLURM_STEP_NODELIST");
  const std::optional<std::string> list = step ? step : reader.find("SLURM_JOB_NODELIST");
  if (!list) {
    reader.miss("SLURM_STEP_NODELIST (or NEXAR_SEED)");
    return "";
  }
  const Result<std::string> host = first_slurm_host(*list);
  if (!host) reader.refuse(fmt::format("{}: {}", step ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST", host.error().sentence()));
  return host ? host_port(*host, port) : "";
}

std::string seed_of(Reader& reader, Launcher launcher) {
  if (const auto seed = reader.find("NEXAR_SEED")) return *seed;
  if (launcher == Launcher::kTorchrun) return torchrun_seed(reader);
  if (launcher == Launcher::kSlurm) return slurm_seed(reader);
  reader.miss("NEXAR_SEED");
  return "";
}

}  // namespace

Result<LauncherEnvironment> recognise(const Config::Lookup& lookup) {
  Reader reader(lookup);
  LauncherEnvironment found;
  const Names* names = launcher_of(reader);
  if (names != nullptr) {
    const bool foreign = names->launcher != Launcher::kNexar;
    found.launcher = names->launcher;
    found.rank = reader.number(names->rank, true);
    found.size = reader.number(names->size, foreign, 1);
    found.local_rank = reader.number(names->local_rank, false);
    found.local_size = reader.number(names->local_size, false, 1);
    if (found.rank && found.size && *found.rank >= *found.size)
      reader.refuse(fmt::format("{} is {}, but {} is {}: ranks count from 0", names->rank, *found.rank, names->size, *found.size));
    found.runs_seed = foreign && found.rank == 0;
  }
  found.seed = seed_of(reader, found.launcher);
  if (!reader.has("NEXAR_TOKEN") && !reader.has("NEXAR_TOKEN_FILE")) reader.miss("NEXAR_TOKEN or NEXAR_TOKEN_FILE");
  if (found.runs_seed) {
    found.seed_file = reader.find("NEXAR_SEED_FILE").value_or("");
    if (found.seed_file.empty()) reader.miss("NEXAR_SEED_FILE (rank 0 runs the seed)");
  }
  if (auto problem = reader.problem(names != nullptr ? names->told_by : nullptr)) return *std::move(problem);
  return found;
}

// `name`, or `name[ranges]` with ranges such as 01-03,7; what follows the first number is of no concern. A bracket may be in the middle:
// a[1-2]b, and there may be several: r[1-2]n[1-4].
Result<std::string> first_slurm_host(const std::string& list) {
  std::string host;
  for (std::size_t at = 0; at < list.size() && list[at] != ',';) {
    if (list[at] != '[') {
      host.push_back(list[at++]);
      continue;
    }
    const std::size_t close = list.find(']', at);
    const std::size_t number_end = std::min(list.find_first_not_of("0123456789", at + 1), list.size());
    if (close == std::string::npos || number_end == at + 1 || (list[number_end] != '-' && list[number_end] != ',' && number_end != close))
      return Error(ErrorCode::kInvalidArgument, fmt::format("\"{}\" is no list of hosts", list));
    host.append(list, at + 1, number_end - at - 1);
    at = close + 1;
  }
  if (host.empty() || host.find_first_of("] \t") != std::string::npos)
    return Error(ErrorCode::kInvalidArgument, fmt::format("\"{}\" is no list of hosts", list));
  return host;
}

}  // namespace nexar::cluster
