// Proves that the plans of all ranks of a group do together what their shapes say.
//
// verify() executes them on symbols, on links that buffer nothing: a message moves when its send is ready and its receive may be granted,
// that is, when the receive's dependencies are done or causality vouches for them (Step::kAhead). It refuses plans of which any of this is
// not true:
//
//   - Slices lie inside their buffers; what the user wants kept is not written; steps depend on earlier steps only.
//   - Sends and receives match one to one, by number and by size.
//   - Of two steps that touch the same elements, one of them writing, the later depends on the earlier, directly or not. So no step reads
//     what may still change, and nothing is overwritten before whoever gets it has it: a transfer can be resumed from the user's buffer.
//   - A receive that is granted ahead: when its message can be sent at all, everything that the receive depends on has happened already, on
//     every schedule.
//   - Everything is done in the end: no deadlock. Because links that buffer more only allow more, none with any link.
//   - Every element of the result contains every contribution that it should, exactly once, of the right element; in rank order or
//   accumulated in
//     one place where the shape asks for it; divided once when it is an average; and is the same expression on every rank.
#pragma once

#include <cstdint>
#include <span>

#include "nexar/result.h"
#include "plan/plan.h"

namespace nexar::plan {

struct Report {
  std::uint64_t steps = 0;
  std::uint64_t messages = 0;

  // The fewest receives from one peer that stood granted, the message's own among them, when a message came that was not the last from
  // that peer. With 2 or more the sender never waits for a grant. kNoLimit when nobody sends anybody more than one message.
  std::uint32_t grants_ahead = kNoLimit;
  static constexpr std::uint32_t kNoLimit = ~0u;
};

// `plans[i]` is rank i's. kInternal, with a sentence that names rank and step, for plans that are wrong.
Result<Report> verify(std::span<const Plan> plans);

}  // namespace nexar::plan
