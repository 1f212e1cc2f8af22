#include "plan/verify.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "plan/verify_parts.h"

namespace nexar::plan {

Error wrong(Rank rank, std::size_t step, std::string what) {
  return Error(ErrorCode::kInternal, fmt::format("step {} of rank {} {}", step, rank, what)).with_rank(rank);
}

Result<Report> verify(std::span<const Plan> plans) {
  if (auto checked = check_structure(plans); !checked) return std::move(checked).error();
  auto matches = match_messages(plans);
  if (!matches) return std::move(matches).error();
  for (const Plan& plan : plans)
    if (auto checked = check_races(plan); !checked) return std::move(checked).error();
  if (auto checked = check_ahead(plans, *matches); !checked) return std::move(checked).error();

  Report report;
  Expressions expressions(plans[0].shape.size);
  std::vector<SymbolMemory> memories(plans.begin(), plans.end());
  if (auto ran = run_symbols(plans, *matches, expressions, memories, report); !ran) return std::move(ran).error();
  if (auto checked = check_results(plans, expressions, memories); !checked) return std::move(checked).error();
  return report;
}

}  // namespace nexar::plan
