// Two-level all-gather: slots go around the hosts, each host's ranks carrying them in parallel, and are handed on inside each host as they
// come.
//
// The slots of a host's ranks are cut into strips (host_slots.h), each with one owner on every host. In step s host a passes on what came
// from host a-s, every owner its own strips, and gives what it got to the other ranks of its host.
//
// Cost, on h hosts of m ranks: h-1 hops between, with (h-1) m slots sent by each host, and a hop inside after each; m-1 times what it looks
// after, h slots, sent inside by each rank: best for large slots.
#include <vector>

#include "plan/algorithms.h"
#include "plan/builder.h"
#include "plan/host_slots.h"
#include "plan/neighbours.h"

namespace nexar::plan {

Plan two_level_all_gather(const Shape& shape) {
  PlanBuilder plan(shape, "two_level");
  const Hosts& hosts = shape.hosts;
  const Cut slots = shape.output_slots();
  const Rank here = hosts.host_of(shape.rank);
  const PartRing inside(hosts.ranks(here), hosts.position(shape.rank));
  const auto host_at = [&](Rank distance) { return (here + distance + hosts.count()) % hosts.count(); };
  const auto owner = [](const SlotStrip& strip, Rank host) { return strip.owners[static_cast<std::size_t>(host)]; };
  // What this rank gives away of its own slot needs not wait for the copy.
  const auto place = [&](const SlotStrip& strip) {
    return (strip.rank == shape.rank ? plan.input() : plan.output().sub(slots.piece(strip.rank))).sub(strip.in_slot);
  };
  const auto hand_on = [&](const std::vector<SlotStrip>& strips) {
    for (const SlotStrip& strip : strips) {
      if (owner(strip, here) != shape.rank) plan.receive(owner(strip, here), store_in(place(strip)));
      for (Rank distance = 1; distance < inside.size() && owner(strip, here) == shape.rank; ++distance)
        plan.send(inside.at(inside.position() + distance), place(strip));
    }
  };

  plan.copy(plan.input(), plan.output().sub(slots.piece(shape.rank)));
  std::vector<SlotStrip> held = slot_strips(hosts, here, shape.count);
  for (Rank step = 0; step < hosts.count() - 1; ++step) {
    for (const SlotStrip& strip : held)
      if (owner(strip, here) == shape.rank) plan.send(owner(strip, host_at(1)), place(strip));
    if (step == 0) hand_on(held);
    held = slot_strips(hosts, host_at(-1 - step), shape.count);
    for (const SlotStrip& strip : held)
      if (owner(strip, here) == shape.rank) plan.receive(owner(strip, host_at(-1)), store_in(place(strip)));
    hand_on(held);
  }
  return plan.build();
}

}  // namespace nexar::plan
