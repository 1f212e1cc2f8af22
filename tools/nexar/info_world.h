// What `nexar info --seed` shows: a world that runs, as its seed and its ranks tell it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "cluster/observation.h"
#include "nexar/result.h"

namespace nexar::tool {

struct WorldInfo {
  struct RankInfo {
    cluster::Member member;
    int host = 0;                           // index
    std::optional<cluster::Observed> seen;  // what it told
    std::string why;                        // it told nothing
  };

  std::string asked;  // where, as HOST:PORT, and who that is
  Epoch epoch = 0;
  int hosts = 0;
  std::vector<RankInfo> ranks;

  bool all_answered() const;
};

// Asks whoever listens at HOST:PORT, the seed or any rank, for the world, and then every rank for itself. `patience` is for each of the
// two, and once more for every 32 ranks. Fails when there is no world to be had.
Result<WorldInfo> look_at_world(const std::string& place, const cluster::Token& token, base::Duration patience);

std::string as_text(const WorldInfo& world);
std::string as_json(const WorldInfo& world);

}  // namespace nexar::tool
