// Which plans this build makes.
#pragma once

#include <cstdint>

namespace nexar::plan {

// Ranks make their plans apart, so they must make the same ones: nodes compare this when they join and when they greet each other, and
// refuse another. To be raised whenever the same call would be planned otherwise than before (an algorithm, the chooser's rules, how
// messages are cut and numbered), or run otherwise in shared memory (collective/direct). A test of the messages of all algorithms fails
// when that was forgotten.
inline constexpr std::uint16_t kPlanVersion = 1;

}  // namespace nexar::plan
