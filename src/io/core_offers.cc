#include "io/core_offers.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/time.h"

namespace nexar::io {
namespace {

// Longer than another rank has a core before it waits and offers it itself.
constexpr base::Duration kDear = std::chrono::milliseconds(1);
constexpr std::uint32_t kPauseMin = 64;  // a millisecond of waiting, or less
constexpr std::uint32_t kPauseMax = 64u << 10;

}  // namespace

void CoreOffers::make(bool crowded, const Clock& clock) {
  if (crowded) return std::this_thread::yield();
  if (left_out_ > 0) {
    --left_out_;
    return;
  }
  const base::Time before = clock.now();
  std::this_thread::yield();
  pause_ = clock.now() - before >= kDear ? std::clamp(2 * pause_, kPauseMin, kPauseMax) : pause_ / 2;
  left_out_ = pause_;
}

}  // namespace nexar::io
