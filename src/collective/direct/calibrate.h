// Which way of filling slots is the faster one between the cores that the ranks of an area run on: through the caches or past them.
//
// It depends on the CPU, and on whether the cores share a cache: between two ranks of one machine streaming took a sixth of the time when
// they were far apart, two thirds when they were near.
#pragma once

#include "collective/direct/area.h"
#include "collective/direct/run.h"
#include "io/clock.h"

namespace nexar::collective::direct {

// Sequence numbers that it uses.
inline constexpr Sequence kCalibrationCalls = 41;

// A collective of some hundred microseconds: all ranks call it when the area is new, with the same `first` number. All of them come to the
// same decision, by the sum of what each measured, and the area keeps it. Anything but kDone leaves the area as it was tuned before.
Outcome calibrate(Area& area, Sequence first, const io::Clock& clock, Patience& patience, Spin spin);

}  // namespace nexar::collective::direct
