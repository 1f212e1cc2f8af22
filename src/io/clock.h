// What time it is. Code that decides something is told the time; only what drives it reads a clock, and a simulator brings its own.
#pragma once

#include <chrono>

#include "base/time.h"

namespace nexar::io {

// Thread: any. Outlives whatever reads it.
class Clock {
 public:
  virtual ~Clock() = default;

  // Never goes backwards, and does not stand still when somebody sets the date.
  virtual base::Time now() const = 0;

  // The date, for certificates and logs. It may jump.
  virtual std::chrono::sys_seconds wall() const = 0;
};

// CLOCK_MONOTONIC and CLOCK_REALTIME. Lives as long as the process.
const Clock& real_clock();

}  // namespace nexar::io
