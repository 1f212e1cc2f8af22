// How a process joins its world when the environment says everything: what Node::from_env() does, as a value.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nexar/config.h"
#include "nexar/node.h"
#include "nexar/result.h"

namespace nexar::runtime {

// The seed that rank 0 runs for a launcher that has none.
struct OwnSeed {
  std::string file;                 // of its secrets
  std::vector<std::string> listen;  // every interface, at the port that the others are told; the first that can be opened
  int world = 0;

  friend bool operator==(const OwnSeed&, const OwnSeed&) = default;
};

struct JoinPlan {
  JoinOptions options;
  std::optional<OwnSeed> seed;  // to be started first, and to live as long as the node
};

// From NEXAR_* and the variables of launchers (cluster/launcher_environment.h): NEXAR_PORT, NEXAR_INTERFACES (with commas between),
// NEXAR_JOIN_TIMEOUT. kInvalidArgument names what is missing or wrong.
Result<JoinPlan> plan_join(const Config::Lookup& lookup);

}  // namespace nexar::runtime
