// Points in time that come in as arguments. There is no now() here: a machine that is told the time can be simulated.
#pragma once

#include <chrono>

namespace nexar::base {

using Duration = std::chrono::nanoseconds;

// Names the time line that Time is on: monotonic, from an arbitrary start, the same for all nodes of one process. It cannot be read;
// whoever drives the code reads a real or a simulated clock and passes the result.
struct Timeline {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  using time_point = std::chrono::time_point<Timeline, Duration>;
  static constexpr bool is_steady = true;
};

using Time = Timeline::time_point;

}  // namespace nexar::base
