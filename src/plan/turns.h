// Where the partial result of each round goes, when it may not go where it comes from: that is being sent at the same time.
#pragma once

#include "plan/builder.h"

namespace nexar::plan {

// Alternates between the output and scratch so that the last round ends in the output. Only when the first round would have to overwrite
// what it sends, a second piece of scratch is used; if that round is also the last, the caller copies.
class Turns {
 public:
  Turns(PlanBuilder& plan, int rounds) : plan_(plan), left_(rounds) {}

  // A place as long as the output that does not overlap `current`.
  Slice next(const Slice& current) {
    --left_;
    const Slice place = left_ % 2 == 0 ? plan_.output() : scratch();
    return place.overlaps(current) ? plan_.scratch(plan_.output().count) : place;
  }

 private:
  Slice scratch() {
    if (scratch_.empty()) scratch_ = plan_.scratch(plan_.output().count);
    return scratch_;
  }

  PlanBuilder& plan_;
  int left_;
  Slice scratch_{};
};

}  // namespace nexar::plan
