// The blocking form of a direct collective: the loop around its state machine.
#pragma once

#include "base/time.h"
#include "collective/direct/operation.h"
#include "io/clock.h"

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

  static Spin for_cores(unsigned ranks, unsigned cores) { return ranks > cores ? Spin{8, true} : Spin{}; }
};

// Offers the core to whoever is queued on it. Another rank gives it back when it waits in its turn; a program that has nothing to do with
// them keeps it for milliseconds, in each of which ten calls could have been made. So where offers have proved dear fewer are made, except
// where ranks outnumber cores.
class Offers {
 public:
  void make(Spin spin, const io::Clock& clock);

 private:
  std::uint32_t left_out_ = 0;  // still to be
  std::uint32_t pause_ = 0;     // how many were left out after the last dear one
};

// Steps the operation until it is over.
Outcome run(Operation& operation, Patience& patience, Spin spin);

// Steps the operation until it is over, or nothing has happened for `idle`: then kWaiting, and it can be gone on with elsewhere.
Outcome run_while_moving(Operation& operation, Spin spin, Offers& offers, base::Duration idle, const io::Clock& clock);

}  // namespace nexar::collective::direct
