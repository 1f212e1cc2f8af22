// Who has stopped answering.
//
// Liveness is what a peer answers, not what could be written to it: each peer is pinged once in an interval, and one that has not answered
// for the timeout is lost. Pings are spread over the interval.
//
//        ping  pong  ping  pong  ping        ping        ping
//   -----|-----|-----|-----|-----|-----------|-----------|--------------> time
//                          |<------------- timeout ------------->| lost
//
// A detector whose own loop did not run has heard nobody, which says nothing about them: time that it slept through beyond two ticks does
// not count, and after such a pause every peer has a whole interval to be heard.
//
// Pure: time is an argument. Thread: engine. Owned by the node, which ticks it.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/time.h"
#include "nexar/ids.h"

namespace nexar::cluster {

struct HeartbeatOptions {
  base::Duration interval = std::chrono::seconds(1);
  base::Duration timeout = std::chrono::seconds(5);  // longer than the interval
};

class FailureDetector {
 public:
  FailureDetector(int size, const HeartbeatOptions& options);

  // Watches a peer from now on; it counts as heard. Forgets one that has left or is lost.
  void add(Rank rank, base::Time now);
  void remove(Rank rank);

  // The peer has answered a ping.
  void heard(Rank rank, base::Time now);

  struct Tick {
    std::vector<Rank> ping;  // to be pinged now
    // Lost, and forgotten here. When one is, those that have missed as many answers but one are named with it: peers that die together are
    // noticed up to an interval apart, and all survivors shall name the same.
    std::vector<Rank> lost;
  };
  Tick tick(base::Time now);

  // When tick() must be called: at least once in a tick, so that pauses are noticed. Time::max() while nobody is watched.
  base::Time next() const;

  // How often that is.
  base::Duration tick_length() const { return tick_; }

 private:
  struct Watched {
    base::Time heard;
    base::Time phase;  // one of the times at which it is pinged, an interval apart
    base::Time ping_due;
  };

  void discount_pause(base::Time now);
  bool has_silent(base::Time now) const;

  HeartbeatOptions options_;
  base::Duration tick_;
  std::vector<std::optional<Watched>> peers_;  // by rank
  std::optional<base::Time> last_tick_;
};

}  // namespace nexar::cluster
