// The findings as people read them, and as programs do.
#pragma once

#include <string>

#include "doctor/finding.h"

namespace nexar::tool::doctor {

std::string as_text(const Findings& findings);
std::string as_json(const Findings& findings);

// How many have that verdict.
int count(const Findings& findings, Verdict verdict);

}  // namespace nexar::tool::doctor
