// Two-level reduce-scatter: inside each host every slot is reduced by the ranks that look after it; then it goes around the hosts, to the
// host of the rank that gets it, collecting one more host's sum at every hop.
//
// The slots of a host's ranks are cut into strips (host_slots.h), each with one owner on every host. In step s host a passes on what host
// a-s-1 gets, as in a ring of hosts, every owner its own strips. The input is kept, so sums live in scratch: 1/m of the input on a host of
// m ranks. In place they live where the values were.
//
// Cost, on h hosts of m ranks: m-1 hops inside with (m-1)/m of the input sent by each rank, h-1 hops between with (h-1) m slots sent by
// each host: best for large slots.
#include <vector>

#include "plan/algorithms.h"
#include "plan/builder.h"
#include "plan/host_slots.h"
#include "plan/neighbours.h"

namespace nexar::plan {
namespace {

// A strip that this rank looks after, and where its sum is now.
struct KeptStrip {
  SlotStrip strip;
  Slice sum;
};

class TwoLevelReduceScatter {
 public:
  explicit TwoLevelReduceScatter(const Shape& shape)
      : plan_(shape, "two_level"),
        hosts_(shape.hosts),
        slots_(shape.input_slots()),
        overwrites_(shape.alias() == Alias::kOutputInInput),
        here_(hosts_.host_of(shape.rank)),
        kept_(static_cast<std::size_t>(hosts_.count())) {}

  Plan build() {
    const Rank count = hosts_.count();
    // Those that have the longest way come first.
    for (Rank step = 0; step < count; ++step) reduce_inside(host_at(-1 - step));
    for (Rank step = 0; step < count - 1; ++step) {
      for (const KeptStrip& one : kept(host_at(-1 - step))) plan_.send(owner(one, host_at(1)), one.sum);
      for (KeptStrip& one : kept(host_at(-2 - step))) collect(one);
    }
    plan_.finish(plan_.output());
    return plan_.build();
  }

 private:
  Rank host_at(Rank distance) const { return (here_ + distance + 2 * hosts_.count()) % hosts_.count(); }
  std::vector<KeptStrip>& kept(Rank host) { return kept_[static_cast<std::size_t>(host)]; }
  static Rank owner(const KeptStrip& one, Rank host) { return one.strip.owners[static_cast<std::size_t>(host)]; }
  Slice values(const SlotStrip& strip) const { return plan_.input().sub(slots_.piece(strip.rank)).sub(strip.in_slot); }

  // Where sums of a strip may be: not where values are that the user keeps.
  Slice place_for(const SlotStrip& strip, const Slice& now) {
    if (overwrites_ || now.buffer == Buffer::kScratch) return now;
    return plan_.scratch(strip.in_slot.count);
  }

  // This host's sums of the slots of `to`. Owners begin with the rank after them, so that not all take from one.
  void reduce_inside(Rank to) {
    const PartRing inside(hosts_.ranks(here_), hosts_.position(plan_.shape().rank));
    for (SlotStrip& strip : slot_strips(hosts_, to, plan_.shape().count)) {
      const Rank owner = strip.owners[static_cast<std::size_t>(here_)];
      if (owner != plan_.shape().rank) {
        plan_.send(owner, values(strip));
        continue;
      }
      Slice sum = values(strip);
      for (Rank distance = 1; distance < inside.size(); ++distance) {
        const Slice place = place_for(strip, sum);
        plan_.receive(inside.at(inside.position() + distance), reduce_into(place, sum, First::kOwn));
        sum = place;
      }
      kept(to).push_back({std::move(strip), sum});
    }
  }

  // Takes the sum of the hosts before; on its own host that is the result.
  void collect(KeptStrip& one) {
    const bool ends = hosts_.host_of(one.strip.rank) == here_;
    const Slice place = ends ? plan_.output().sub(one.strip.in_slot) : place_for(one.strip, one.sum);
    plan_.receive(owner(one, host_at(-1)), reduce_into(place, one.sum, First::kReceived));
    one.sum = place;
  }

  PlanBuilder plan_;
  const Hosts hosts_;
  const Cut slots_;
  const bool overwrites_;
  const Rank here_;
  std::vector<std::vector<KeptStrip>> kept_;  // by the host whose slots they lie in
};

}  // namespace

Plan two_level_reduce_scatter(const Shape& shape) { return TwoLevelReduceScatter(shape).build(); }

}  // namespace nexar::plan
