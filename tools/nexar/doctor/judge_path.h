// What is to be said of a way that was examined.
#pragma once

#include <chrono>
#include <string>

#include "doctor/finding.h"
#include "doctor/probe.h"

namespace nexar::tool::doctor {

// Of a way on which questions were answered: losses and the largest packet. `whom` is who answered, `interface` what leads there.
Finding judge_loss(const std::string& whom, const Path& path);
Finding judge_size(const std::string& whom, const Path& path, const std::string& interface);

// `1.25 ms`, `180 us`.
std::string time_text(std::chrono::nanoseconds time);

}  // namespace nexar::tool::doctor
