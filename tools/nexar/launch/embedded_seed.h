// The seed of the world that a launcher starts.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "launch/hosts.h"
#include "nexar/result.h"
#include "nexar/seed.h"

namespace nexar::launch {

// A seed in this process, for one world, with secrets of its own.
struct EmbeddedSeed {
  Seed seed;
  std::string address;  // at which ranks reach it
  std::string token;
};

// `listen` is ADDRESS or ADDRESS:PORT, where it listens and where ranks reach it; one that means all interfaces, or none at all, is made
// up for: loopback when all ranks are here, otherwise the address from which this host reaches the first of the others. kInvalidArgument
// names what cannot be told. Ranks that have not all come `formation` after the first of them will not: those that have are told who is
// missing.
Result<EmbeddedSeed> start_seed(const std::string& listen, const std::vector<Place>& places, std::chrono::nanoseconds formation);

}  // namespace nexar::launch
