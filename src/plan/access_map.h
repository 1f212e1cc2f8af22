// Who touched which elements of a buffer last: from this the builder derives what a step depends on.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "plan/cut.h"

namespace nexar::plan {

// Steps are given in program order. A reader waits for the last writer; a writer for everybody who has read since, or for the last writer
// when nobody has. What is older is waited for by those already.
//
// Owned by a PlanBuilder, one for each buffer.
class AccessMap {
 public:
  using StepNumber = std::uint32_t;

  // Appends to `found` whom the step has to wait for; may append one twice.
  void read(Extent extent, StepNumber step, std::vector<StepNumber>& found);
  void write(Extent extent, StepNumber step, std::vector<StepNumber>& found);

 private:
  static constexpr std::uint32_t kNobody = ~0u;

  struct Reader {
    StepNumber step;
    std::uint32_t next;  // in readers_, or kNobody
  };

  // Elements with one history, from its key in the map to `end`. Two intervals may share the tail of a list of readers: lists grow only at
  // their heads.
  struct Interval {
    std::uint64_t end;
    StepNumber writer = kNobody;
    std::uint32_t readers = kNobody;
  };
  using Map = std::map<std::uint64_t, Interval>;

  // The first interval of `extent`, after cutting so that intervals end where it begins and ends and leave no gap in it.
  Map::iterator carve(Extent extent);

  Map intervals_;
  std::vector<Reader> readers_;
};

}  // namespace nexar::plan
