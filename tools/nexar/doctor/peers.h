// The way to every other rank, measured by ranks that all run this.
//
// Ranks take turns, so that they do not disturb each other: the one whose turn it is asks the others' echoes for losses, sizes and TCP,
// pings them, and exchanges messages with each rank after it.
#pragma once

#include "doctor/finding.h"
#include "doctor/surroundings.h"
#include "nexar/node.h"

namespace nexar::tool::doctor {

Findings check_peers(const Node& node, const Surroundings& here);

}  // namespace nexar::tool::doctor
