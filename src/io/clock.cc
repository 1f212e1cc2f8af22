#include "io/clock.h"

#include <ctime>

#include "base/assert.h"

namespace nexar::io {
namespace {

timespec read(clockid_t id) {
  timespec time{};
  NEXAR_ASSERT(clock_gettime(id, &time) == 0, "the two clocks that we read exist on every Linux");
  return time;
}

class RealClock final : public Clock {
 public:
  base::Time now() const override {
    const timespec time = read(CLOCK_MONOTONIC);
    return base::Time(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
  }

  std::chrono::sys_seconds wall() const override { return std::chrono::sys_seconds(std::chrono::seconds(read(CLOCK_REALTIME).tv_sec)); }
};

}  // namespace

const Clock& real_clock() {
  static const RealClock clock;
  return clock;
}

}  // namespace nexar::io
