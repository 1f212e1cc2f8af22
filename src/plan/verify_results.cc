// What the buffers of each rank must hold in the end: spec by spec, as symbols.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "plan/verify_parts.h"

namespace nexar::plan {
namespace {

using enum OperationId;

// What a run of the output must be.
struct Wanted {
  enum class Kind : std::uint8_t { kValueOf, kReduction, kIdentity };

  Extent extent;       // of the output
  std::uint64_t base;  // element of the inputs that its first element comes from
  Kind kind;
  Rank rank = 0;  // kValueOf: whose value; kReduction: of ranks [0, rank)
};

// The element of rank `from`'s input at which the slot for rank `to` begins.
std::uint64_t slot_start(const Shape& from, Rank to) { return from.input_slots().piece(to).first; }

std::vector<Wanted> wanted_by(std::span<const Plan> plans, const Shape& shape) {
  using Kind = Wanted::Kind;
  const Extent all{0, shape.output_count()};
  std::vector<Wanted> wanted;
  switch (shape.operation) {
    case kAllReduce: return {{all, 0, Kind::kReduction, shape.size}};
    case kReduce:
      if (shape.is_root()) wanted.push_back({all, 0, Kind::kReduction, shape.size});
      return wanted;
    case kScan: return {{all, 0, Kind::kReduction, shape.rank + 1}};
    case kExclusiveScan: return {{all, 0, shape.rank == 0 ? Kind::kIdentity : Kind::kReduction, shape.rank}};
    case kReduceScatter:
    case kReduceScatterV: return {{all, slot_start(shape, shape.rank), Kind::kReduction, shape.size}};
    case kBroadcast: return {{all, 0, Kind::kValueOf, shape.root}};
    case kScatter:
    case kScatterV: return {{all, slot_start(plans[static_cast<std::size_t>(shape.root)].shape, shape.rank), Kind::kValueOf, shape.root}};
    case kGather:
    case kGatherV:
      if (!shape.is_root()) return wanted;
      [[fallthrough]];
    case kAllGather:
    case kAllGatherV:
      for (Rank from = 0; from < shape.size; ++from) wanted.push_back({shape.output_slots().piece(from), 0, Kind::kValueOf, from});
      return wanted;
    case kAllToAll:
    case kAllToAllV:
      for (Rank from = 0; from < shape.size; ++from)
        wanted.push_back(
            {shape.output_slots().piece(from), slot_start(plans[static_cast<std::size_t>(from)].shape, shape.rank), Kind::kValueOf, from});
      return wanted;
    default: return wanted;
  }
}

std::string fault_of(const Wanted& wanted, const SymbolRun& run, const Shape& shape, const Expressions& expressions) {
  const ExpressionId id = run.symbol.expression;
  if (id == kUndefined) return "is not written";
  if (wanted.kind == Wanted::Kind::kIdentity) return id == kIdentity ? "" : "is not the neutral element";
  if (id == kIdentity) return "is the neutral element";
  if (run.symbol.base != wanted.base + run.extent.first) return "is of another element";
  if (wanted.kind == Wanted::Kind::kValueOf) return id == expressions.leaf(wanted.rank) ? "" : fmt::format("is not rank {}'s", wanted.rank);
  if (!expressions.exactly(id, wanted.rank)) return "does not contain every contribution exactly once";
  if ((shape.ordered || shape.reproducible) && !expressions.in_rank_order(id)) return "is not in rank order";
  if (shape.reproducible && !expressions.accumulated(id, wanted.rank)) return "is not accumulated in one place";
  if (expressions.divided(id) != (shape.average && wanted.rank > 1)) return "is divided wrongly";
  return "";
}

Error wrong_result(const Shape& shape, std::uint64_t element, const std::string& fault) {
  return Error(ErrorCode::kInternal, fmt::format("element {} of rank {}'s result {}", element, shape.rank, fault)).with_rank(shape.rank);
}

Result<void> check_rank(std::span<const Plan> plans, const Plan& plan, const Expressions& expressions, const SymbolMemory& memory) {
  const Slice output = plan.output();
  for (const Wanted& wanted : wanted_by(plans, plan.shape))
    for (const SymbolRun& run : memory.read(output.sub(wanted.extent)))
      if (const std::string fault = fault_of(wanted, run, plan.shape, expressions); !fault.empty())
        return wrong_result(plan.shape, wanted.extent.first + run.extent.first, fault);
  return {};
}

// Every rank evaluates the same expression for the same element.
Result<void> check_agreement(const Plan& first, const Plan& plan, const SymbolMemory& first_memory, const SymbolMemory& memory) {
  SymbolBuffer reference(first.shape.count);
  const Extent all{0, first.shape.count};
  reference.write(all, first_memory.read(first.output()));
  for (const SymbolRun& run : memory.read(plan.output()))
    for (const SymbolRun& other : reference.read(run.extent))
      if (other.symbol.expression != run.symbol.expression)
        return wrong_result(plan.shape, run.extent.first, fmt::format("is another expression than rank {}'s", first.shape.rank));
  return {};
}

Result<void> check_barrier(const Plan& plan, const Expressions& expressions, const SymbolMemory& memory) {
  if (plan.token_count == 0) return wrong(plan.shape.rank, 0, "is missing: nothing says that this rank has entered");
  const auto heard = memory.read({Buffer::kToken, plan.token_count - 1, 1});
  if (!expressions.contains_all(heard[0].symbol.expression)) return wrong_result(plan.shape, 0, "leaves before everybody has entered");
  return {};
}

}  // namespace

Result<void> check_results(std::span<const Plan> plans, const Expressions& expressions, const std::vector<SymbolMemory>& memories) {
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const OperationId operation = plans[i].shape.operation;
    if (operation == kBarrier) {
      if (auto checked = check_barrier(plans[i], expressions, memories[i]); !checked) return checked;
      continue;
    }
    if (auto checked = check_rank(plans, plans[i], expressions, memories[i]); !checked) return checked;
    if (operation != kAllReduce) continue;
    if (auto checked = check_agreement(plans[0], plans[i], memories[0], memories[i]); !checked) return checked;
  }
  return {};
}

}  // namespace nexar::plan
