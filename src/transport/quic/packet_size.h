// How long the packets of a connection may be.
//
// A path can be narrower than the interfaces at its ends promise, and nobody may tell: then small packets pass and full ones vanish. So
// after a silence packets are small. But a peer that does not run is silent too, so full size is tried again when the peer answers, after
// pauses that grow as long as it fails.
//
// Thread: engine. Owned by its connection.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/time.h"

namespace nexar::transport::quic {

class PacketSize {
 public:
  // What every path carries.
  static constexpr std::size_t kSmallBytes = 1200;

  // Three probes in a row are unanswered when this many probe timeouts have passed, each twice as long as the one before. A peer on a busy
  // machine may not run for some tens of milliseconds, and that is no reason.
  static constexpr int kSilentTimeouts = 1 + 2 + 4;
  static constexpr base::Duration kSilenceMin = std::chrono::milliseconds(100);

  // A failed attempt at full size costs one silence: a tenth of the time at first, and next to nothing on a path that stays narrow.
  static constexpr base::Duration kFirstPause = std::chrono::seconds(1);
  static constexpr base::Duration kLongestPause = std::chrono::minutes(1);

  explicit PacketSize(std::size_t full) : full_(full) {}

  std::size_t bytes() const { return small_ ? kSmallBytes : full_; }
  void set_full(std::size_t full) { full_ = full; }

  // Something that the peer must acknowledge was sent.
  void sent(base::Time now) {
    if (waiting_) return;
    waiting_ = true;
    silent_since_ = now;
  }

  // The peer has acknowledged something; `all` when nothing is on its way any more.
  void acknowledged(bool all, base::Time now) {
    waiting_ = !all;
    silent_since_ = now;
    if (!small_ || now < full_again_) return;
    small_ = false;
    full_since_ = now;
  }

  // A timer of the connection has expired. `timeout` is the time until a packet without an answer is sent again for the first time.
  void expired(base::Duration timeout, base::Time now) {
    if (small_ || !waiting_ || now - silent_since_ < std::max(timeout * kSilentTimeouts, kSilenceMin)) return;
    small_ = true;
    const bool failed_again = pause_ > base::Duration::zero() && silent_since_ - full_since_ < pause_;
    pause_ = failed_again ? std::min(2 * pause_, kLongestPause) : kFirstPause;
    full_again_ = now + pause_;
  }

 private:
  std::size_t full_;
  bool small_ = false;
  bool waiting_ = false;
  base::Time silent_since_{};
  base::Duration pause_{};  // the last one; zero before the first
  base::Time full_since_{};
  base::Time full_again_{};
};

}  // namespace nexar::transport::quic
