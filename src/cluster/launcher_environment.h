// What the environment says about a process that some launcher started.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "nexar/config.h"
#include "nexar/ids.h"
#include "nexar/result.h"

namespace nexar::cluster {

// Of a seed whose launcher names a host and no port: Slurm. NEXAR_SEED_PORT is another.
inline constexpr std::uint16_t kDefaultSeedPort = 7070;

enum class Launcher : std::uint8_t { kNone, kNexar, kTorchrun, kOpenMpi, kSlurm };

struct LauncherEnvironment {
  Launcher launcher = Launcher::kNone;
  std::optional<Rank> rank;  // unset only without a launcher: in the order of arrival
  std::optional<int> size;
  std::optional<int> local_rank;
  std::optional<int> local_size;
  std::string seed;        // HOST:PORT
  bool runs_seed = false;  // this process does, from seed_file, with `size` nodes
  std::string seed_file;

  friend bool operator==(const LauncherEnvironment&, const LauncherEnvironment&) = default;
};

// Recognises, the first that is there: NEXAR_RANK; RANK and WORLD_SIZE of torchrun; OMPI_COMM_WORLD_RANK of Open MPI; SLURM_PROCID. Open
// MPI comes before Slurm because mpirun in a batch job inherits the variables of the script, which has rank 0 of its own.
//
// Everybody needs NEXAR_TOKEN or NEXAR_TOKEN_FILE and the seed's address: NEXAR_SEED, else MASTER_ADDR and MASTER_PORT of torchrun, else
// the first host of the Slurm step. Under another launcher than nexar's rank 0 runs the seed and needs NEXAR_SEED_FILE. kInvalidArgument
// names all variables that are missing, or the first whose value is none.
Result<LauncherEnvironment> recognise(const Config::Lookup& lookup);

// The first host of a list as Slurm writes it: `a[01-03,7],b` begins with a01. kInvalidArgument, quoting the list, when it has none.
Result<std::string> first_slurm_host(const std::string& list);

}  // namespace nexar::cluster
