// The parts of verify(), in the order in which it calls them. Each takes for granted what those before it have shown.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nexar/result.h"
#include "plan/plan.h"
#include "plan/symbols.h"
#include "plan/verify.h"

namespace nexar::plan {

// A step of one rank.
struct StepOf {
  Rank rank = -1;
  std::uint32_t step = 0;
};

// For each rank and step, the other end of the message; of no meaning for local steps.
using Matches = std::vector<std::vector<StepOf>>;

Error wrong(Rank rank, std::size_t step, std::string what);

// Bounds, kinds, operands, dependencies; and that all ranks' plans are of one call.
Result<void> check_structure(std::span<const Plan> plans);

// No two steps of a rank race.
Result<void> check_races(const Plan& plan);

Result<Matches> match_messages(std::span<const Plan> plans);

// Receives that are granted ahead are so with reason.
Result<void> check_ahead(std::span<const Plan> plans, const Matches& matches);

// The buffers of one rank.
struct SymbolMemory {
  explicit SymbolMemory(const Plan& plan);

  SymbolBuffer& of(Buffer buffer) { return buffers[static_cast<std::size_t>(buffer)]; }
  const SymbolBuffer& of(Buffer buffer) const { return buffers[static_cast<std::size_t>(buffer)]; }
  std::vector<SymbolRun> read(const Slice& slice) const { return of(slice.buffer).read({slice.first, slice.count}); }
  void write(const Slice& slice, const std::vector<SymbolRun>& runs) { of(slice.buffer).write({slice.first, slice.count}, runs); }

  std::vector<SymbolBuffer> buffers;
};

// Executes everything; fills in the report.
Result<void> run_symbols(std::span<const Plan> plans, const Matches& matches, Expressions& expressions, std::vector<SymbolMemory>& memories,
                         Report& report);

// The memories hold what the shapes ask for.
Result<void> check_results(std::span<const Plan> plans, const Expressions& expressions, const std::vector<SymbolMemory>& memories);

}  // namespace nexar::plan
