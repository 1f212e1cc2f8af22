// A clock that a test turns.
#pragma once

#include <chrono>

#include "base/time.h"
#include "io/clock.h"

namespace nexar::test {

class TurnedClock : public io::Clock {
 public:
  base::Time now() const override { return now_; }
  std::chrono::sys_seconds wall() const override { return {}; }
  void pass(base::Duration time) { now_ += time; }

 private:
  base::Time now_{std::chrono::seconds(1)};
};

}  // namespace nexar::test
