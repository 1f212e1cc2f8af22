// When a thread that waits without sleeping gives its core to others.
#pragma once

#include <cstdint>

#include "io/clock.h"

namespace nexar::io {

// Offers the core to whoever is queued on it. A thread of another rank gives it back when it waits in its turn; a program that has nothing
// to do with them keeps it for milliseconds, in each of which ten calls could have been made. So where offers have proved dear fewer are
// made, except where ranks outnumber cores: there somebody needs the core to do what this thread waits for.
//
// Thread: one at a time.
class CoreOffers {
 public:
  void make(bool crowded, const Clock& clock);

 private:
  std::uint32_t left_out_ = 0;  // still to be
  std::uint32_t pause_ = 0;     // how many were left out after the last dear one
};

}  // namespace nexar::io
