// From a call to the plan that does it: chooses, builds, remembers.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "nexar/result.h"
#include "plan/chooser.h"
#include "plan/plan_cache.h"

namespace nexar::plan {

// Bytes of plans that a planner keeps: a training loop has some dozen shapes, and a plan of a thousand ranks has a few hundred KiB.
inline constexpr std::size_t kPlanCacheBytes = 16 << 20;

// Thread: engine. Owned by whoever runs the collectives of a view: when the costs change, so does the planner.
class Planner {
 public:
  explicit Planner(const Chooser& chooser = Chooser(), std::size_t cache_bytes = kPlanCacheBytes)
      : chooser_(chooser), cache_(cache_bytes) {}

  // The plan for a shape, by the algorithm named or, when that is empty, by the one that the chooser takes. Under a microsecond when it was
  // asked for before.
  Result<std::shared_ptr<const Plan>> plan(const Shape& shape, std::string_view algorithm = {});

  const Chooser& chooser() const { return chooser_; }
  const PlanCache& cache() const { return cache_; }

 private:
  Chooser chooser_;
  PlanCache cache_;
};

}  // namespace nexar::plan
