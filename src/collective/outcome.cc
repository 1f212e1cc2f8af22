#include "collective/outcome.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"

namespace nexar::collective {
namespace {

std::string how_far(const wire::Progress& progress) {
  return fmt::format("{} of {} steps and {} bytes done", progress.steps_done, progress.steps_total, progress.bytes_done);
}

std::string sentence_of(const Seen& seen) {
  if (!seen.state) return fmt::format("rank {} did not say how far it is", seen.rank);
  if (*seen.state == wire::OperationState::kDone) return fmt::format("rank {} was done", seen.rank);
  if (*seen.state == wire::OperationState::kEnded) return fmt::format("rank {} had ended", seen.rank);
  if (seen.progress.waits_for < 0) return fmt::format("rank {} waited for nobody, {}", seen.rank, how_far(seen.progress));
  return fmt::format("rank {} waited for rank {}, {}", seen.rank, seen.progress.waits_for, how_far(seen.progress));
}

// Who holds `self` up in the end: whoever it waits for may wait for another.
std::optional<Rank> end_of_waiting(const wire::Progress& own, std::span<const Seen> others) {
  if (own.waits_for < 0) return std::nullopt;
  Rank rank = own.waits_for;
  for (std::size_t hops = 0; hops < others.size(); ++hops) {
    const auto seen = std::find_if(others.begin(), others.end(), [&](const Seen& one) { return one.rank == rank; });
    if (seen == others.end() || seen->state != wire::OperationState::kRunning || seen->progress.waits_for < 0) break;
    rank = seen->progress.waits_for;
  }
  return rank;
}

}  // namespace

Error of_operation(Error error, const wire::CallDescriptor& call, Sequence sequence) {
  return std::move(error).with_operation(std::string(to_string(call.operation)), sequence);
}

Error verdict_for_others(const Error& error, Rank rank, const wire::CallDescriptor& call, Sequence sequence) {
  switch (error.code()) {
    case ErrorCode::kMismatch:
    case ErrorCode::kTimeout:
    case ErrorCode::kPeerLost: return of_operation(error, call, sequence);
    case ErrorCode::kCancelled:
      return of_operation(Error(ErrorCode::kCancelled, fmt::format("rank {} ended it: {}", rank, error.sentence())).with_rank(rank), call,
                          sequence);
    default: break;
  }
  const std::string sentence = fmt::format("rank {} failed with {}: {}", rank, to_string(error.code()), error.sentence());
  return of_operation(Error(ErrorCode::kCancelled, sentence).with_rank(rank).with_cause(error), call, sequence);
}

Error mismatch(Rank a, const wire::CallDescriptor& a_call, Rank b, const wire::CallDescriptor& b_call, Sequence sequence) {
  if (b < a) return mismatch(b, b_call, a, a_call, sequence);
  std::string sentence = fmt::format("rank {} called {} and rank {} called {}", a, a_call.to_text(), b, b_call.to_text());
  if (a_call.to_text() == b_call.to_text()) sentence += ", with another user op, algorithm, compressor or list of tensors";
  const Rank ranks[] = {a, b};
  return of_operation(Error(ErrorCode::kMismatch, std::move(sentence)).with_ranks(ranks), a_call, sequence);
}

Error gone_past(Rank peer, const wire::CallDescriptor& call, Sequence sequence) {
  return of_operation(
      Error(ErrorCode::kMismatch, fmt::format("rank {} has gone past {} with another call", peer, call.to_text())).with_rank(peer), call,
      sequence);
}

Error other_size(Rank self, std::uint64_t ours, Rank peer, std::uint64_t theirs, const wire::CallDescriptor& call, Sequence sequence) {
  const Rank ranks[] = {self, peer};
  return of_operation(
      Error(ErrorCode::kMismatch, fmt::format("in {} rank {} has {} bytes for what passes between it and rank {}, which has {}",
                                              call.to_text(), self, ours, peer, theirs))
          .with_ranks(ranks),
      call, sequence);
}

Error timed_out(std::string_view which, base::Duration limit, Rank self, const wire::Progress& own, std::span<const Seen> others,
                const wire::CallDescriptor& call, Sequence sequence) {
  std::vector<Rank> missing;
  for (const Seen& seen : others)
    if (seen.state == wire::OperationState::kNotEntered) missing.push_back(seen.rank);
  std::string text = fmt::format("{} did not end within the {} of {}: ", call.to_text(), which, base::format_duration(limit));
  if (!missing.empty()) text += fmt::format("not entered by rank{} {}; ", missing.size() > 1 ? "s" : "", fmt::join(missing, ", "));
  text += sentence_of({self, wire::OperationState::kRunning, own});
  for (const Seen& seen : others)
    if (seen.state != wire::OperationState::kNotEntered) text += "; " + sentence_of(seen);
  std::vector<Rank> concerned = missing;
  if (const auto last = end_of_waiting(own, others); concerned.empty() && last) concerned.push_back(*last);
  return of_operation(Error(ErrorCode::kTimeout, std::move(text)).with_ranks(concerned), call, sequence);
}

}  // namespace nexar::collective
