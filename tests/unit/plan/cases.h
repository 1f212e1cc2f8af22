// Calls to try: every algorithm on groups of many sizes, with counts and variants that have gone wrong somewhere before.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plan/algorithms.h"

namespace nexar::plan {

// One call as all ranks make it.
struct Call {
  const Algorithm* algorithm = nullptr;
  std::vector<Shape> shapes;  // one for each rank

  std::string to_text() const;
  std::vector<Plan> plans() const;
};

// The counts that go wrong: 0, 1, n-1, n, n+1, a prime, and one that is large.
std::vector<std::uint64_t> counts_for(Rank size);

// A call with every rank's counts derived from `count`; in v-forms they are uneven, some are 0. Transfers are cut into about `segments`.
Call make_call(const Algorithm& algorithm, Rank size, std::uint64_t count, int segments, const Shape& variant = {});

// Hosts with so many ranks each, one after the other.
Hosts hosts_of_sizes(std::span<const int> sizes);

// Ranks on hosts in every way that has gone wrong somewhere, each with levels: even and uneven hosts, ranks one after the other or in turn.
std::vector<Hosts> layouts_for(Rank size);

// make_call for every variant that the algorithm has: in place or not, several roots, ordered, reproducible, averaged; and for algorithms
// of two levels every layout, or the one given.
std::vector<Call> calls_of(const Algorithm& algorithm, Rank size, std::uint64_t count, int segments);
std::vector<Call> calls_of(const Algorithm& algorithm, Rank size, std::uint64_t count, int segments, const Hosts& hosts);

// The same with one of the layouts, another for every `turn`: for tests that cannot try all with everything.
std::vector<Call> calls_in_turn(const Algorithm& algorithm, Rank size, std::uint64_t count, int segments, std::uint64_t turn);

// Of all operations.
std::vector<const Algorithm*> every_algorithm();

}  // namespace nexar::plan
