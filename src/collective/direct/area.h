// One rank's access to the memory that a group shares, and what it remembers about it from call to call.
//
// Thread: whoever owns the group's calls at the moment (owner.h). The shared words are read and written by other threads and processes.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collective/direct/layout.h"
#include "collective/direct/lending.h"
#include "collective/direct/pace.h"
#include "collective/direct/pattern.h"
#include "collective/direct/streaming.h"
#include "io/clock.h"
#include "nexar/ids.h"

namespace nexar::collective::direct {

// What this rank has published comes before what it looks at next.
inline void order_before_looking() {
#if defined(__SANITIZE_THREAD__)  // which does not know fences
  static std::atomic<int> order = 0;
  order.exchange(0, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

// Wakes ranks that have gone to sleep waiting for what this rank has just published.
class Bell {
 public:
  virtual ~Bell() = default;
  // Called after words have been stored. Whoever implements it orders those stores before its look at who sleeps.
  virtual void ring() = 0;
};

class Area {
 public:
  // The memory, the bell and the lending outlive the area. Without a bell nobody may sleep. Without lending everything is copied; either
  // all ranks have one or none, and where nobody has buffers to lend, none is faster. With a clock large calls learn which way of storing
  // is the fastest, and how fast this rank is; without one they do as they are tuned, and share reductions equally.
  Area(std::byte* base, Layout layout, Rank rank, Bell* bell = nullptr, const Lending* lending = nullptr, const Tuning& tuning = {},
       const io::Clock* clock = nullptr);

  const Layout& layout() const { return layout_; }
  const Tuning& tuning() const { return tuning_; }
  Rank rank() const { return rank_; }
  Rank ranks() const { return layout_.ranks(); }
  const Lending* lending() const { return lending_; }
  Streaming* streaming() { return streaming_ ? &*streaming_ : nullptr; }
  const io::Clock* clock() const { return clock_; }
  PaceMeter& pace_meter() { return pace_meter_; }

  static unsigned slot_of(Position position) { return static_cast<unsigned>((position >> kRoundBits) + position) & 1; }
  Header& header(Rank rank, unsigned slot) const { return layout_.header(base_, rank, slot); }
  std::byte* body(Rank rank, unsigned slot) const { return layout_.body(base_, rank, slot); }
  const Progress& progress(Rank rank) const { return layout_.progress(base_, rank); }

  // Where each rank's bytes of a tiny call are.
  std::span<const void* const> payloads(unsigned slot) const { return payloads_[slot]; }

  // The header is read next: many that are on their way at once come sooner than one after the other.
  void expect(Rank rank, unsigned slot) const { __builtin_prefetch(&header(rank, slot)); }

  // Tells the others which call this rank has begun; where memory may be lent in it, also whether this rank does.
  void enter(Sequence sequence, std::uint64_t fingerprint, std::optional<bool> lends = std::nullopt);

  // Whether `rank` lends in a call in which memory may be lent; nothing as long as it has not begun that call. One that has gone past it
  // without us did not: nobody gets past a call in which somebody lends.
  std::optional<bool> lends(Rank rank, Sequence sequence) const;

  // Whether the slot that a round uses may be filled: everybody who read what it held has left that. `cursor` is the first reader not yet
  // known to have; the caller keeps it, zeroed when the slot changes.
  bool is_free(unsigned slot, Rank& cursor);

  // Makes the slot's content visible, and later the rank's slice of the result in it.
  void publish(Position position, std::uint64_t fingerprint, Ranks readers);
  void publish_reduced(Position position) { header(rank_, slot_of(position)).with_body.reduced.store(position, kPublish); }
  void publish_left(Position position) { mine().left.store(position, kPublish); }

  // Every peer has begun the call, so that all of them have left every earlier one.
  void all_entered(Sequence sequence) { all_left_ = position(sequence, 0); }

  // Ends a call here, so that nobody waits for this rank in it.
  void finish(Sequence sequence) { publish_left(end_of(sequence)); }
  void fail(Sequence sequence);

  // Before fail(): whoever comes late does not succeed with what was published for the call.
  void withdraw(Sequence sequence);

  // Whether `rank` reads nothing any more of the call or of one before it, and will not begin to. After a call that did not succeed, memory
  // that was lent in it goes back to the user when this holds for every member that lives. Asked after fail().
  bool has_left(Rank rank, Sequence sequence) const;

  // Whether `rank` has given the call up, or a later one. A reader of lent memory asks before it reads, so that nobody waits for it in
  // vain, and after it has read, so that one that was taken for dead discards what it has.
  bool has_failed(Rank rank, Sequence sequence) const { return reached(progress(rank).failed.load(std::memory_order_seq_cst), sequence); }

  void ring() {
    if (bell_ != nullptr) bell_->ring();
  }

 private:
  struct Use {
    Position position;
    Ranks readers;
  };

  Progress& mine() { return layout_.progress(base_, rank_); }
  void refresh(Sequence sequence);

  std::byte* base_;
  Layout layout_;
  Rank rank_;
  Bell* bell_;
  const Lending* lending_;
  Tuning tuning_;
  const io::Clock* clock_;
  std::optional<Streaming> streaming_;
  PaceMeter pace_meter_;
  std::array<Use, 2> uses_;  // what each slot was last used for
  Position all_left_;        // everything before this has been left by all
  Sequence next_refresh_ = 0;
  std::array<std::vector<const void*>, 2> payloads_;
};

}  // namespace nexar::collective::direct
