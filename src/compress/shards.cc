#include "compress/shards.h"

#include <cmath>

#include "reduce/float_environment.h"

namespace nexar::compress {
namespace {

// Apart, so that no compiler multiplies before the standard modes are set.
[[gnu::noinline]] double share(std::uint64_t count, double ratio) { return std::ceil(static_cast<double>(count) * ratio); }

}  // namespace

std::uint32_t kept(std::uint64_t count, double ratio) {
  if (count == 0) return 0;
  const reduce::FloatEnvironment standard;
  return static_cast<std::uint32_t>(std::clamp(share(count, ratio), 1.0, static_cast<double>(count)));
}

}  // namespace nexar::compress
