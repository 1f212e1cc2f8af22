// When to call which address of one peer.
//
// The addresses are candidates: some may lead nowhere, or to somebody else. They are tried in order, each a while after the one before if
// none has been reached by then; one that fails is tried again, later each time. Once the peer has been reached at one, only that one is
// called.
//
// Pure: time and jitter are arguments. Thread: engine. Owned by Formation, one for each peer that this node calls.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"

namespace nexar::cluster {

// A handshake takes a few round trips. After this long the next candidate has its chance while this one still has its own.
inline constexpr base::Duration kCandidateStagger = std::chrono::milliseconds(250);

// What each further handshake that is begun at the same time adds to that: a few milliseconds of CPU time at both ends, on hosts that have
// more nodes than cores.
inline constexpr base::Duration kStaggerPerPeer = std::chrono::milliseconds(10);

// While handshakes with other peers still end well, the network is good and the hosts are busy: a call that has not been answered is given
// as long as those took, at most this. Otherwise a large world on few cores multiplies its own work by the number of its addresses.
inline constexpr base::Duration kStaggerMax = std::chrono::seconds(2);

// Between the calls of one candidate: soon at first, because worlds form in milliseconds, and not a burden when one takes a minute.
inline constexpr base::Duration kRetryFirst = std::chrono::milliseconds(20);
inline constexpr base::Duration kRetryMax = std::chrono::milliseconds(500);

class CallSchedule {
 public:
  CallSchedule(std::size_t candidates, base::Time now, base::Duration stagger = kCandidateStagger);

  // A candidate that is to be called now; nothing when none is. It is being called until failed() is told.
  std::optional<std::size_t> take(base::Time now);

  // When take() may have something to say again; Time::max() when only the end of a call changes that.
  base::Time next() const;

  // Another peer has answered after `took`: a call that is under way has its time from now.
  void other_answered(base::Time now, base::Duration took);

  // The peer is there: the other candidates are not needed.
  void reached(std::size_t candidate) { reached_ = candidate; }

  // The call has ended without a link. `was_reached`: the peer was there and said no for now. `jitter`, 0 to 1, spreads those who retry.
  void failed(std::size_t candidate, bool was_reached, base::Time now, double jitter);

 private:
  struct Candidate {
    bool calling = false;
    base::Time due;
    base::Duration backoff = kRetryFirst;
  };

  bool is_eligible(std::size_t candidate) const;

  std::vector<Candidate> candidates_;
  std::optional<std::size_t> reached_;
  base::Duration stagger_;
  base::Time stagger_until_;
};

}  // namespace nexar::cluster
