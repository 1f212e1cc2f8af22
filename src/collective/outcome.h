// The sentences with which operations end when they do not succeed.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/time.h"
#include "nexar/error.h"
#include "nexar/ids.h"
#include "wire/call.h"
#include "wire/operation_messages.h"

namespace nexar::collective {

// What is known of another rank in an operation.
struct Seen {
  Rank rank = 0;
  std::optional<wire::OperationState> state{};  // nothing: it has not answered
  wire::Progress progress{};
};

// With the operation's name and number.
Error of_operation(Error error, const wire::CallDescriptor& call, Sequence sequence);

// What the others are told when `rank` ended the operation with `error`: the same where it concerns all of them, kCancelled naming the rank
// and its error otherwise.
Error verdict_for_others(const Error& error, Rank rank, const wire::CallDescriptor& call, Sequence sequence);

// Two ranks called different things. The same text whichever of the two writes it.
Error mismatch(Rank a, const wire::CallDescriptor& a_call, Rank b, const wire::CallDescriptor& b_call, Sequence sequence);

// `peer` has ended the operation without this rank, and does not remember what it called.
Error gone_past(Rank peer, const wire::CallDescriptor& call, Sequence sequence);

// Both called the same, but with sizes that do not fit: `ours` at `self`, `theirs` at `peer`.
Error other_size(Rank self, std::uint64_t ours, Rank peer, std::uint64_t theirs, const wire::CallDescriptor& call, Sequence sequence);

// Who has not entered, who waits for whom, and how far everybody is. `limit` is what has passed, and `which` its name.
Error timed_out(std::string_view which, base::Duration limit, Rank self, const wire::Progress& own, std::span<const Seen> others,
                const wire::CallDescriptor& call, Sequence sequence);

}  // namespace nexar::collective
