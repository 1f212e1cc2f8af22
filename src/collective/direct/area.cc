#include "collective/direct/area.h"

#include "base/assert.h"

namespace nexar::collective::direct {
namespace {

// A rank that does not publish for this many calls brings its words up to date, long before they could be taken for later ones: it may have
// to put that off to its next call, and peers may be two calls ahead of it.
constexpr Sequence kCallsBetweenRefreshes = Sequence{1} << 35;
constexpr Sequence kCallsBetweenLooks = Sequence{1} << 20;

}  // namespace

Area::Area(std::byte* base, Layout layout, Rank rank, Bell* bell, const Lending* lending, const Tuning& tuning, const io::Clock* clock)
    : base_(base),
      layout_(layout),
      rank_(rank),
      bell_(bell),
      lending_(lending),
      tuning_(tuning),
      clock_(clock),
      uses_{Use{header(rank, 0).position.load(), {}}, Use{header(rank, 1).position.load(), {}}},
      all_left_(uses_[0].position) {
  if (clock != nullptr) streaming_.emplace(*clock);
  for (const unsigned slot : {0U, 1U})
    for (Rank of = 0; of < layout.ranks(); ++of) payloads_[slot].push_back(header(of, slot).payload);
  NEXAR_ASSERT(rank >= 0 && rank < layout.ranks() && layout.ranks() <= kRanksMax, "the rank has a part of the area");
}

void Area::enter(Sequence sequence, std::uint64_t fingerprint, std::optional<bool> lends) {
  mine().call.store(fingerprint, std::memory_order_relaxed);
  mine().entered.store(sequence, lends ? std::memory_order_seq_cst : std::memory_order_release);
  if (lends) mine().lends.store((sequence << 1) | (*lends ? 1 : 0), kPublish);
  if (sequence >= next_refresh_) refresh(sequence);
}

void Area::refresh(Sequence sequence) {
  next_refresh_ = sequence + kCallsBetweenLooks;
  for (unsigned slot : {0U, 1U}) {
    Rank cursor = 0;
    if (position(sequence, 0) - uses_[slot].position < position(kCallsBetweenRefreshes, 0)) continue;
    if (!is_free(slot, cursor)) {
      next_refresh_ = sequence + 1;
      continue;
    }
    uses_[slot] = {end_of(sequence - 1), {}};
    header(rank_, slot).position.store(end_of(sequence - 1), std::memory_order_relaxed);
  }
  // Only the two uses are ever held against this: whichever is older may stand for what nobody has told for so long.
  if (position(sequence, 0) - all_left_ >= position(kCallsBetweenRefreshes, 0))
    all_left_ = reached(uses_[0].position, uses_[1].position) ? uses_[1].position : uses_[0].position;
}

std::optional<bool> Area::lends(Rank rank, Sequence sequence) const {
  const auto further = static_cast<std::int64_t>(progress(rank).lends.load(std::memory_order_acquire) - (sequence << 1));
  if (further < 0) return std::nullopt;
  return further == 1;
}

bool Area::is_free(unsigned slot, Rank& cursor) {
  const Use& use = uses_[slot];
  if (!reached(use.position, all_left_)) return true;
  if (cursor < use.readers.first) cursor = use.readers.first;
  for (; cursor < use.readers.end; ++cursor)
    if (cursor != rank_ && !reached(progress(cursor).left.load(std::memory_order_acquire), use.position)) return false;
  return true;
}

void Area::publish(Position position, std::uint64_t fingerprint, Ranks readers) {
  const unsigned slot = slot_of(position);
  uses_[slot] = {position, readers};
  Header& mine = header(rank_, slot);
  mine.fingerprint.store(fingerprint, std::memory_order_relaxed);
  mine.position.store(position, kPublish);
}

void Area::withdraw(Sequence sequence) {
  for (unsigned slot : {0U, 1U})
    if (uses_[slot].position >> kRoundBits == position(sequence, 0) >> kRoundBits)
      header(rank_, slot).fingerprint.store(kGivenUp, std::memory_order_release);
}

void Area::fail(Sequence sequence) {
  // In one order with has_left's look at who has entered: whoever has not by then sees that this rank has failed.
  mine().failed.store(sequence, std::memory_order_seq_cst);
  publish_left(end_of(sequence));
}

bool Area::has_left(Rank rank, Sequence sequence) const {
  if (rank == rank_) return true;
  const Progress& theirs = progress(rank);
  return reached(theirs.left.load(std::memory_order_acquire), end_of(sequence)) ||
         !reached(theirs.entered.load(std::memory_order_seq_cst), sequence);
}

}  // namespace nexar::collective::direct
