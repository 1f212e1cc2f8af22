#include "collective/direct/operation.h"

#include <array>
#include <atomic>
#include <optional>
#include <span>
#include <utility>

#include "base/assert.h"

namespace nexar::collective::direct {
namespace {

// Steps without progress between two looks at whether a peer has given up or called something else. A look reads a line that the peer
// writes at the end of every call, and so takes it away from it for a moment.
constexpr std::uint32_t kStepsPerLook = 128;

bool overlap(const void* a, const void* b, std::uint64_t bytes_a, std::uint64_t bytes_b) {
  const auto* first = static_cast<const std::byte*>(a);
  const auto* second = static_cast<const std::byte*>(b);
  return first < second + bytes_b && second < first + bytes_a;
}

}  // namespace

Operation::Operation(Area& area, const Call& call, const Pattern& pattern)
    : area_(area),
      call_(call),
      pattern_(pattern),
      in_headers_(pattern.tiny && pattern.blocks == 1 && pattern.publishes && pattern.count > 0 && call.pieces.empty()),
      shares_(pattern.ranks) {
  NEXAR_ASSERT(pattern_.fits(), "the caller has asked whether the call fits");
  found_[static_cast<std::size_t>(area_.rank())] = {};
  if (area_.lending() == nullptr || !pattern_.may_lend()) {
    area_.enter(call_.sequence, call_.fingerprint);
    settle_way();
    return;
  }
  agreed_ = !pattern_.depends_on_lending();
  if (!agreed_) pattern_ = Pattern(call, area.rank(), area.layout(), area.tuning(), true);
  lend();
  area_.enter(call_.sequence, call_.fingerprint, lends_);
  if (agreed_) settle_way();
}

void Operation::settle_way() {
  if (!pattern_.publishes) published_ = pattern_.rounds;
  if (pattern_.shares_by_pace && area_.clock() != nullptr) settle_pace();
  if (pattern_.bytes_max() < Streaming::kFrom || area_.streaming() == nullptr) return;
  const OperationId operation = call_.pieces.empty() ? call_.operation : OperationId::kAllReduceBucketed;
  trial_ = area_.streaming()->begin({operation, lends_, pattern_.bytes_max()}, {pattern_.streams_in, pattern_.streams_out});
  pattern_.streams_in = trial_->way().in;
  pattern_.streams_out = trial_->way().out;
}

void Operation::settle_pace() {
  meter_ = &area_.pace_meter();
  meter_->begin();
  pace_ = meter_->pace((loan_.input.lent == 0 ? 1U : 0U) + (wants_result() ? 1U : 0U));
}

// Peers may be asked in any order: nobody who lends gets past the call without this rank.
bool Operation::agree() {
  bool lent = lends_;
  for (; agreed_cursor_ < pattern_.ranks && !lent; ++agreed_cursor_) {
    if (agreed_cursor_ == area_.rank()) continue;
    const std::optional<bool> theirs = area_.lends(agreed_cursor_, call_.sequence);
    if (!theirs) {
      blocked_on_ = agreed_cursor_;
      return false;
    }
    lent = *theirs;
  }
  if (!lent) pattern_ = Pattern(call_, area_.rank(), area_.layout(), area_.tuning());
  settle_way();
  return agreed_ = true;
}

void Operation::lend() {
  if (!pattern_.publishes || !call_.pieces.empty()) return;
  const std::uint64_t bytes = pattern_.count * pattern_.element;
  if (pattern_.take == Take::kReduce && !call_.op && pattern_.ranks > 2) return;  // a user op may not overwrite what it reads
  // Where the result may replace values that peers have not read yet, they read a copy.
  const bool is_kept = pattern_.two_stages || pattern_.take != Take::kReduce || pattern_.blocks > 1 ||
                       !overlap(call_.send, call_.recv, pattern_.bytes(), bytes);
  if (is_kept)
    if (const auto found = area_.lending()->find(call_.send, pattern_.bytes())) loan_.input = *found;
  if (pattern_.two_stages && wants_result())
    if (const auto found = area_.lending()->find(call_.recv, bytes)) loan_.output = *found;
  lends_ = loan_.input.lent != 0 || loan_.output.lent != 0;
  if (loan_.input.lent != 0) area_.lending()->on_lent(pattern_.bytes());
  if (loan_.output.lent != 0) found_[static_cast<std::size_t>(area_.rank())].output = static_cast<const std::byte*>(call_.recv);
}

Outcome Operation::step() {
  if (outcome_ != Outcome::kWaiting) return outcome_;
  bool moved = false;
  while (publish() || reduce_slice() || take()) moved = true;
  if (outcome_ == Outcome::kWaiting && settle() && nobody_disagrees()) return end(Outcome::kDone);
  if (outcome_ == Outcome::kWaiting && !moved && ++fruitless_ % kStepsPerLook == 0) look_at(blocked_on_);
  if (news_) {
    news_ = false;
    area_.ring();
  }
  return outcome_;
}

Outcome Operation::stop(Outcome why) { return outcome_ == Outcome::kWaiting ? end(why) : outcome_; }

Outcome Operation::end(Outcome outcome) {
  outcome_ = outcome;
  stop_reading();
  // What a peer has brought about it also sees by itself.
  if (outcome == Outcome::kOpFailed || outcome == Outcome::kRevoked || outcome == Outcome::kDeadline || outcome == Outcome::kCancelled)
    area_.withdraw(call_.sequence);
  if (outcome == Outcome::kDone) {
    area_.finish(call_.sequence);
    if (trial_) area_.streaming()->end(*trial_);
    if (meter_ != nullptr) meter_->end();
  } else
    area_.fail(call_.sequence);
  news_ = false;
  area_.ring();
  return outcome;
}

void Operation::stop_reading() {
  if (std::exchange(borrows_, false)) area_.lending()->end_reading();
}

template <typename Work>
void Operation::timed(void (PaceMeter::*note)(base::Duration, std::uint64_t), std::uint64_t elements, Work work) {
  if (meter_ == nullptr) return work();
  const base::Time begun = area_.clock()->now();
  work();
  (meter_->*note)(area_.clock()->now() - begun, elements * pattern_.element);
}

bool Operation::publish() {
  if (outcome_ != Outcome::kWaiting || (!agreed_ && !agree())) return false;
  if (published_ == pattern_.rounds || published_ >= taken_ + 2) return false;
  const Position now = at(published_);
  const unsigned slot = Area::slot_of(now);
  if (!area_.is_free(slot, free_cursor_)) {
    blocked_on_ = free_cursor_;
    return false;
  }
  free_cursor_ = 0;
  if (!pattern_.tiny) {
    auto& with_body = area_.header(area_.rank(), slot).with_body;
    with_body.loan = loan_;
    with_body.reduced.store(~now, std::memory_order_relaxed);  // whatever was here, it is not yet
    with_body.pace.store(pace_.word(), std::memory_order_relaxed);
  }
  if (in_headers_)
    copy_into_header(slot);
  else if (loan_.input.lent == 0)
    timed(&PaceMeter::copied, pattern_.part(published_).count, [&] { copy_in(published_); });
  area_.publish(now, call_.fingerprint, pattern_.readers);
  ++published_;
  return news_ = true;
}

bool Operation::reduce_slice() {
  if (!pattern_.two_stages || outcome_ != Outcome::kWaiting || reduced_ == published_) return false;
  if (!all_published(reduced_, published_cursor_)) return false;
  if (reduced_ == 0 && pace_.is_known()) share_out();
  const Part part = pattern_.part(reduced_);
  const Part slice = this->slice(reduced_, area_.rank());
  std::byte* out = loan_.output.lent != 0 ? static_cast<std::byte*>(call_.recv) + (part.first + slice.first) * pattern_.element
                                          : slot(area_.rank(), reduced_) + slice.first * pattern_.element;
  bool reduced = false;
  timed(&PaceMeter::reduced, slice.count, [&] { reduced = reduce(reduced_, slice, out); });
  if (!reduced || !lenders_stand()) return false;
  published_cursor_ = 0;
  area_.publish_reduced(at(reduced_));
  ++reduced_;
  return news_ = true;
}

// Everybody has told its pace with the first round, and nobody tells another before all have left that round. Whose own is not known, or
// does not count, has made everybody's shares equal.
void Operation::share_out() {
  const unsigned slot = Area::slot_of(at(0));
  std::array<Pace, kRanksMax> paces;
  for (Rank rank = 0; rank < pattern_.ranks; ++rank)
    paces[static_cast<std::size_t>(rank)] = Pace::from_word(area_.header(rank, slot).with_body.pace.load(std::memory_order_relaxed));
  meter_->found_that_shares_pay(shares_.go_by(std::span(paces).first(static_cast<std::size_t>(pattern_.ranks))));
}

bool Operation::take() {
  if (outcome_ != Outcome::kWaiting || taken_ == pattern_.rounds || taken_ == published_) return false;
  if (pattern_.two_stages) {
    if (taken_ == reduced_) return false;
    if (wants_result()) {
      if (!all_reduced(taken_, reduced_cursor_)) return false;
      timed(&PaceMeter::copied, pattern_.part(taken_).count, [&] { gather_slices(taken_); });
    }
    reduced_cursor_ = 0;
  } else {
    if (!all_published(taken_, published_cursor_)) return false;
    if (pattern_.take == Take::kReduce && !reduce_round(taken_)) return false;
    if (pattern_.take == Take::kCopy) copy_out(taken_);
    published_cursor_ = 0;
  }
  if (!lenders_stand()) return false;
  if (taken_ == 0 && pattern_.sources.size() == pattern_.ranks) area_.all_entered(call_.sequence);
  ++taken_;
  if (taken_ < pattern_.rounds || lends_) {
    area_.publish_left(at(taken_ - 1));
    news_ = true;
  }
  return true;
}

bool Operation::settle() { return taken_ == pattern_.rounds && published_ == pattern_.rounds && (!lends_ || all_left(left_cursor_)); }

// Who waits for nobody looks whether somebody else has published for another call, so that of two who take themselves for the root at
// least the later one finds out.
bool Operation::nobody_disagrees() {
  if (!pattern_.publishes || pattern_.sources.size() > 1 || (pattern_.sources.size() == 1 && !pattern_.sources.contains(area_.rank())))
    return true;
  order_before_looking();
  for (Rank rank = 0; rank < pattern_.ranks; ++rank)
    for (const unsigned slot : {0U, 1U}) {
      if (rank == area_.rank()) continue;
      const Header& header = area_.header(rank, slot);
      if (header.position.load(std::memory_order_acquire) >> kRoundBits != at(0) >> kRoundBits) continue;
      const std::uint64_t theirs = header.fingerprint.load(std::memory_order_relaxed);
      if (theirs == call_.fingerprint || theirs == kGivenUp) continue;
      mismatch_ = {rank, theirs};
      blocked_on_ = rank;
      end(Outcome::kMismatch);
      return false;
    }
  return true;
}

bool Operation::all_published(std::uint64_t round, Rank& cursor) {
  const Position wanted = at(round);
  const unsigned slot = Area::slot_of(wanted);
  if (cursor < pattern_.sources.first) cursor = pattern_.sources.first;
  if (pattern_.tiny)
    for (Rank next = cursor + 1; next < pattern_.sources.end; ++next) area_.expect(next, slot);
  for (; cursor < pattern_.sources.end; ++cursor) {
    if (cursor == area_.rank()) continue;
    const Header& header = area_.header(cursor, slot);
    const Position seen = header.position.load(std::memory_order_acquire);
    if (seen == wanted) {
      const bool is_ours = pattern_.tiny && header.fingerprint.load(std::memory_order_relaxed) == call_.fingerprint;
      if (!is_ours && !accept(cursor, header)) return false;
      continue;
    }
    blocked_on_ = cursor;
    if (reached(seen, wanted)) end(Outcome::kEnded);  // it has gone past this call without us
    if (trial_ && round == 0) trial_->wait_for_peers();
    return false;
  }
  if (trial_) trial_->have_met();
  return true;
}

// Before a byte of it is used.
bool Operation::accept(Rank rank, const Header& header) {
  const std::uint64_t theirs = header.fingerprint.load(std::memory_order_relaxed);
  if (theirs != call_.fingerprint) {
    mismatch_ = {rank, theirs};
    blocked_on_ = rank;
    end(theirs == kGivenUp ? Outcome::kEnded : Outcome::kMismatch);
    return false;
  }
  if (pattern_.tiny) return true;

  const Loan loan = header.with_body.loan;
  Found& found = found_[static_cast<std::size_t>(rank)];
  found = {};
  if (loan.input.lent == 0 && loan.output.lent == 0) return true;
  const Lending* lending = area_.lending();
  if (lending != nullptr && !std::exchange(borrows_, true)) lending->begin_reading();
  if (!stands(rank)) return false;
  const std::uint64_t bytes = pattern_.count * pattern_.element;
  if (lending != nullptr && loan.input.lent != 0)
    found.input = lending->address(rank, loan.input.buffer, loan.input.offset, pattern_.bytes());
  if (lending != nullptr && loan.output.lent != 0) found.output = lending->address(rank, loan.output.buffer, loan.output.offset, bytes);
  if ((found.input != nullptr) == (loan.input.lent != 0) && (found.output != nullptr) == (loan.output.lent != 0)) return true;
  blocked_on_ = rank;
  end(Outcome::kNonsense);
  return false;
}

bool Operation::stands(Rank rank) {
  if (!area_.has_failed(rank, call_.sequence)) return true;
  blocked_on_ = rank;
  end(Outcome::kEnded);
  return false;
}

// What was read in place counts only if its owner still meant it. Who has lent nothing may be past this call already, and have given up a
// later one.
bool Operation::lenders_stand() {
  if (!borrows_) return true;
  for (Rank rank = pattern_.sources.first; rank < pattern_.sources.end; ++rank) {
    const Found& found = found_[static_cast<std::size_t>(rank)];
    if (rank != area_.rank() && (found.input != nullptr || found.output != nullptr) && !stands(rank)) return false;
  }
  return true;
}

bool Operation::all_reduced(std::uint64_t round, Rank& cursor) {
  const unsigned slot = Area::slot_of(at(round));
  for (; cursor < pattern_.ranks; ++cursor) {
    if (cursor == area_.rank() || area_.header(cursor, slot).with_body.reduced.load(std::memory_order_acquire) == at(round)) continue;
    blocked_on_ = cursor;
    return false;
  }
  return true;
}

bool Operation::all_left(Rank& cursor) {
  if (cursor < pattern_.readers.first) cursor = pattern_.readers.first;
  for (; cursor < pattern_.readers.end; ++cursor) {
    if (cursor == area_.rank() || reached(area_.progress(cursor).left.load(std::memory_order_acquire), at(pattern_.rounds - 1))) continue;
    blocked_on_ = cursor;
    return false;
  }
  return true;
}

void Operation::look_at(Rank rank) {
  const Progress& theirs = area_.progress(rank);
  const Sequence entered = theirs.entered.load(std::memory_order_acquire);
  const std::uint64_t called = theirs.call.load(std::memory_order_acquire);
  // What it called belongs to the call that it has entered only if that is still the same.
  if (entered == call_.sequence && called != call_.fingerprint && theirs.entered.load(std::memory_order_relaxed) == entered) {
    mismatch_ = {rank, called};
    end(Outcome::kMismatch);
    return;
  }
  if (!area_.has_failed(rank, call_.sequence)) return;
  // It may have given up a later call, having done everything for this one: then that is visible now.
  if (publish() || reduce_slice() || take() || outcome_ != Outcome::kWaiting || settle() || blocked_on_ != rank) return;
  end(Outcome::kEnded);
}

}  // namespace nexar::collective::direct
