// A certificate is valid from 10 minutes before the seed made it. Here only what this host says of its own clock; against other clocks it
// is set by check_world.
#include <chrono>
#include <string>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <sys/timex.h>

#include "doctor/checks.h"

namespace nexar::tool::doctor {
namespace {

// Nothing here is older than this; a clock that shows an earlier time was never set.
constexpr std::chrono::sys_days kEarliest = std::chrono::year(2024) / 1 / 1;

}  // namespace

Findings check_clock(const Surroundings&) {
  const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  timex state{};
  const bool synchronised = adjtimex(&state) >= 0 && (state.status & STA_UNSYNC) == 0;
  const std::string seen = fmt::format("{:%Y-%m-%d %H:%M:%S} UTC, {}", fmt::gmtime(std::chrono::system_clock::to_time_t(now)),
                                       synchronised ? "synchronised" : "not synchronised as far as the kernel knows");
  if (now >= kEarliest) return {ok("clock", seen)};
  return {wrong("clock", seen, "set the clock: certificates of the seed are not valid yet for this host; `timedatectl set-ntp true`")};
}

}  // namespace nexar::tool::doctor
