// A direct collective as a state machine: publish, take, leave, round by round, each as soon as the peers allow it.
//
// step() does what can be done now and says whether something is left to wait for. The engine steps it among other work; a blocking call
// is the loop around it (run.h). The words in shared memory are the same either way, so that peers cannot tell.
//
// Thread: the owner of the area's calls. Nothing is allocated. One operation at a time runs in an area.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "collective/direct/area.h"
#include "collective/direct/call.h"
#include "collective/direct/pace.h"
#include "collective/direct/pattern.h"
#include "collective/direct/shares.h"
#include "collective/direct/streaming.h"
#include "nexar/result.h"

namespace nexar::collective::direct {

struct Mismatch {
  Rank rank = 0;
  std::uint64_t theirs = 0;  // what that rank called, as a fingerprint; ours is in the call
};

class Operation {
 public:
  // Enters the call: from here on peers know that this rank is in it. `call` and what it points to stay until the operation is over.
  Operation(Area& area, const Call& call) : Operation(area, call, Pattern(call, area.rank(), area.layout(), area.tuning())) {}
  // The same, of a call whose pattern is known.
  Operation(Area& area, const Call& call, const Pattern& pattern);
  ~Operation() { stop_reading(); }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // kWaiting, or how it ended; then it stays so.
  Outcome step();

  // Ends it now, unless it has ended, as `why` says: kRevoked, kDeadline or kCancelled.
  Outcome stop(Outcome why);

  // Whether peers may still read memory that this rank has lent, although the call has not succeeded: then the buffers are not the user's
  // again before Area::has_left holds for every member that lives.
  bool has_lent() const { return lends_; }

  bool is_over() const { return outcome_ != Outcome::kWaiting; }
  const Call& call() const { return call_; }
  Rank blocked_on() const { return blocked_on_; }
  std::uint64_t rounds() const { return pattern_.rounds; }
  std::uint64_t rounds_done() const { return taken_; }
  Way way() const { return {pattern_.streams_in, pattern_.streams_out}; }
  Mismatch mismatch() const { return mismatch_; }
  Result<void> error() && { return std::move(error_); }

 private:
  struct Found {
    const std::byte* input;   // the first byte of a rank's published buffer; null when it is in its slot
    const std::byte* output;  // the same of its result, of which it has published a slice
  };

  // Finds out whether somebody lends, where that decides how the call is done. False while it is not known.
  bool agree();

  // How the call is done is known.
  void settle_way();
  void settle_pace();

  // Each does one piece of work if it can be done; whether it did.
  bool publish();
  bool reduce_slice();
  bool take();
  bool settle();

  bool all_published(std::uint64_t round, Rank& cursor);
  bool all_reduced(std::uint64_t round, Rank& cursor);
  bool all_left(Rank& cursor);
  bool nobody_disagrees();
  bool accept(Rank rank, const Header& header);
  bool stands(Rank rank);
  bool lenders_stand();
  void look_at(Rank rank);
  Outcome end(Outcome outcome);

  // Of two stages: whoever has no use for the result does not wait for it.
  bool wants_result() const { return call_.operation == OperationId::kAllReduce || area_.rank() == call_.root; }

  void lend();
  void stop_reading();
  void copy_into_header(unsigned slot);
  void copy_in(std::uint64_t round);
  void copy_out(std::uint64_t round);
  void gather_slices(std::uint64_t round);
  bool reduce_round(std::uint64_t round);
  bool reduce(std::uint64_t round, Part part, std::byte* out);
  bool reduce_stretch(std::uint64_t round, Part part, const std::byte* own, std::byte* out, bool into_result);
  void move(std::byte* to, const std::byte* from, std::uint64_t elements, bool streams) const;

  // Calls work(memory, offset, count) for each stretch of elements `part` of a buffer that lies in one piece; `offset` elements of the part
  // come before it. The buffer is `whole`, or the call's pieces.
  template <typename Byte, typename Work>
  void for_each_stretch(Byte* whole, Part part, Work work) const;

  // The elements of a round, counted from its first, that a rank reduces; whole cache lines where there are enough.
  Part slice(std::uint64_t round, Rank rank) const { return shares_.of(rank, pattern_.part(round).count, kCacheLine / pattern_.element); }
  bool shares_are_known() const { return !pace_.counts || reduced_ > 0; }
  void share_out();

  // Does the work, and measures it where the rank's pace is of interest.
  template <typename Work>
  void timed(void (PaceMeter::*note)(base::Duration, std::uint64_t), std::uint64_t elements, Work work);

  // Where the element `first` of this rank's block of what `rank` has published in `round` is.
  const std::byte* source(Rank rank, std::uint64_t round, std::uint64_t first) const;
  std::byte* slot(Rank rank, std::uint64_t round) const;
  Position at(std::uint64_t round) const { return position(call_.sequence, round); }

  Area& area_;
  const Call& call_;
  Pattern pattern_;
  const bool in_headers_;  // all bytes travel there in one piece, this rank's as well
  bool agreed_ = true;     // it is known how the call is done
  Rank agreed_cursor_ = 0;
  bool lends_ = false;
  bool borrows_ = false;  // has found somebody's lent memory
  Loan loan_{};

  std::uint64_t published_ = 0;  // rounds, of each kind of work
  std::uint64_t reduced_ = 0;
  std::uint64_t taken_ = 0;
  Rank free_cursor_ = 0;  // the first rank that each of them waits for
  Rank published_cursor_ = 0;
  Rank reduced_cursor_ = 0;
  Rank left_cursor_ = 0;

  std::optional<Streaming::Trial> trial_;  // of a large call, in an area that learns
  PaceMeter* meter_ = nullptr;             // where shares go by pace
  Pace pace_{};                            // that this rank tells
  Shares shares_;

  Outcome outcome_ = Outcome::kWaiting;
  bool news_ = false;  // words have been stored that somebody may sleep on
  std::uint32_t fruitless_ = 0;
  Rank blocked_on_ = 0;
  Mismatch mismatch_{};
  Result<void> error_{};
  std::array<Found, kRanksMax> found_;  // of ranks whose round has been seen; not cleared, which would take longer than a tiny call
};

}  // namespace nexar::collective::direct
