#include "collective/direct/pace.h"

#include <algorithm>
#include <chrono>

namespace nexar::collective::direct {
namespace {

constexpr float kMiB = 1 << 20;
constexpr float kWeightOfLast = 0.25F;
constexpr float kAtMost = 1e9F;  // a second

std::uint32_t told(float nanoseconds) { return static_cast<std::uint32_t>(std::clamp(nanoseconds, 1.0F, kAtMost)); }

}  // namespace

Pace PaceMeter::pace(unsigned copies) const {
  if (reduction_ == 0 || (copies > 0 && copy_ == 0)) return {};
  return {copies == 0 ? 0 : told(static_cast<float>(copies) * copy_), told(reduction_), shares_pay_};
}

void PaceMeter::end() {
  learn(copy_, copied_);
  learn(reduction_, reduced_);
}

void PaceMeter::learn(float& known, const Sum& sum) {
  if (sum.bytes == 0) return;
  const float last = std::max(1.0F, std::chrono::duration<float, std::nano>(sum.time).count() * kMiB / static_cast<float>(sum.bytes));
  known = known == 0 ? last : known + kWeightOfLast * (last - known);
}

}  // namespace nexar::collective::direct
