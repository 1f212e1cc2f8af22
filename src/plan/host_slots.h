// The slots of one host's ranks, cut into strips: what algorithms of two levels move where a buffer has a slot for each rank.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/hosts.h"
#include "plan/shape.h"

namespace nexar::plan {

// A strip lies in one slot, and is looked after by the slot's own rank on that rank's host.
struct SlotStrip {
  Rank rank;                 // whose slot
  Extent in_slot;            // where in the slot
  std::vector<Rank> owners;  // one of each host
};

// Slots of `slot` elements each.
inline std::vector<SlotStrip> slot_strips(const Hosts& hosts, Rank host, std::uint64_t slot) {
  std::vector<SlotStrip> found;
  const Strips strips(hosts, slot * static_cast<std::uint64_t>(hosts.ranks_on(host)));
  for (const Extent& strip : strips.extents())
    found.push_back({strips.owner(host, strip), {strip.first % slot, strip.count}, strips.owners(strip)});
  return found;
}

}  // namespace nexar::plan
