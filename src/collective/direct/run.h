// The blocking form of a direct collective: the loop around its state machine.
#pragma once

#include "base/time.h"
#include "collective/direct/operation.h"
#include "io/clock.h"
#include "io/core_offers.h"

namespace nexar::collective::direct {

// How a thread waits, and who may stop it.
class Patience {
 public:
  virtual ~Patience() = default;

  // Called now and then while nothing happens, more often when ranks outnumber cores. `looks` counts the calls since something did. May
  // spend time: drive the engine, or sleep until the bell rings. kWaiting to go on, or why the operation ends.
  virtual Outcome look(std::uint64_t looks) = 0;
};

// How often a thread that waits polls before it looks at the world and offers its core to others: about 10 us of polls where there are
// cores for all ranks, so that the offer costs nothing and whoever is queued on this core by accident gets it; few where there are not,
// because another rank needs the core to do what this one waits for.
struct Spin {
  std::uint32_t polls = 256;
  bool crowded = false;

  static Spin where(bool crowded) { return crowded ? Spin{8, true} : Spin{}; }
};

// Steps the operation until it is over.
Outcome run(Operation& operation, Patience& patience, Spin spin);

// Steps the operation until it is over, or nothing has happened for `idle`: then kWaiting, and it can be gone on with elsewhere.
Outcome run_while_moving(Operation& operation, Spin spin, io::CoreOffers& offers, base::Duration idle, const io::Clock& clock);

}  // namespace nexar::collective::direct
