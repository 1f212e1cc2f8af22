#include "collective/direct/run.h"

#include <optional>
#include <thread>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace nexar::collective::direct {
namespace {

// Tells the core that this is a spin loop: it saves power and leaves the loop faster.
void relax() {
#if defined(__SSE2__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

}  // namespace

Outcome run(Operation& operation, Patience& patience, Spin spin) {
  std::uint64_t looks = 0;
  std::uint64_t done = operation.rounds_done();
  for (std::uint32_t polls = 0;;) {
    const Outcome outcome = operation.step();
    if (outcome != Outcome::kWaiting) return outcome;
    relax();
    if (++polls < spin.polls) continue;
    polls = 0;
    if (operation.rounds_done() != done) looks = 0;
    done = operation.rounds_done();
    if (const Outcome why = patience.look(looks++); why != Outcome::kWaiting) return operation.stop(why);
    std::this_thread::yield();
  }
}

// The clock is not read before some polls were in vain: most tiny calls end without it.
Outcome run_while_moving(Operation& operation, Spin spin, io::CoreOffers& offers, base::Duration idle, const io::Clock& clock) {
  std::optional<base::Time> idle_since;
  std::uint64_t done = operation.rounds_done();
  for (std::uint32_t polls = 0;;) {
    const Outcome outcome = operation.step();
    if (outcome != Outcome::kWaiting) return outcome;
    relax();
    if (++polls < spin.polls) continue;
    polls = 0;
    const base::Time now = clock.now();
    if (operation.rounds_done() != done) idle_since.reset();
    done = operation.rounds_done();
    if (!idle_since) idle_since = now;
    if (now - *idle_since >= idle) return Outcome::kWaiting;
    offers.make(spin.crowded, clock);
  }
}

}  // namespace nexar::collective::direct
