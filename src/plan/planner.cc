#include "plan/planner.h"

#include <utility>

namespace nexar::plan {

Result<std::shared_ptr<const Plan>> Planner::plan(const Shape& shape, std::string_view algorithm) {
  if (auto known = cache_.find(shape, algorithm)) return known;
  Result<Choice> choice = algorithm.empty() ? chooser_.choose(shape) : chooser_.choose(shape, algorithm);
  if (!choice) return std::move(choice).error();
  Result<Plan> made = make_plan(choice->shape, *choice->algorithm);
  if (!made) return std::move(made).error();
  auto plan = std::make_shared<const Plan>(*std::move(made));
  cache_.add(shape, algorithm, plan);
  return std::shared_ptr<const Plan>(std::move(plan));
}

}  // namespace nexar::plan
