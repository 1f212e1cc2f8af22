#include "cluster/failure_detector.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace nexar::cluster {
namespace {

// Ticks in an interval: enough to spread pings and to notice pauses well below the timeout.
constexpr int kTicksPerInterval = 8;
constexpr base::Duration kTickMin = std::chrono::milliseconds(1);

}  // namespace

FailureDetector::FailureDetector(int size, const HeartbeatOptions& options)
    : options_(options), tick_(std::max(options.interval / kTicksPerInterval, kTickMin)), peers_(static_cast<std::size_t>(size)) {}

// The first ping is due at the peer's own place in the interval.
void FailureDetector::add(Rank rank, base::Time now) {
  const auto place = options_.interval * rank / static_cast<std::int64_t>(peers_.size());
  peers_[static_cast<std::size_t>(rank)] = Watched{now, now + place, now + place};
  if (!last_tick_) last_tick_ = now;
}

void FailureDetector::remove(Rank rank) {
  peers_[static_cast<std::size_t>(rank)].reset();
  if (std::none_of(peers_.begin(), peers_.end(), [](const auto& peer) { return peer.has_value(); })) last_tick_.reset();
}

void FailureDetector::heard(Rank rank, base::Time now) {
  std::optional<Watched>& peer = peers_[static_cast<std::size_t>(rank)];
  if (peer) peer->heard = std::max(peer->heard, now);
}

void FailureDetector::discount_pause(base::Time now) {
  const base::Duration gap = now - last_tick_.value_or(now);
  last_tick_ = now;
  if (gap <= 2 * tick_) return;
  for (std::optional<Watched>& peer : peers_) {
    if (!peer) continue;
    peer->heard = std::min(peer->heard + (gap - tick_), now);
    const base::Time a_whole_interval = now + options_.interval - options_.timeout;
    if (peer->heard >= a_whole_interval) continue;
    peer->heard = a_whole_interval;
    peer->ping_due = now;
  }
}

bool FailureDetector::has_silent(base::Time now) const {
  return std::any_of(peers_.begin(), peers_.end(), [&](const auto& peer) { return peer && now - peer->heard > options_.timeout; });
}

FailureDetector::Tick FailureDetector::tick(base::Time now) {
  discount_pause(now);
  Tick result;
  const bool verdict = has_silent(now);
  // A peer that answers is never silent for longer than an interval and a round trip, for which another half is left.
  const base::Duration together = std::max(options_.timeout - options_.interval, options_.interval * 3 / 2);
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    std::optional<Watched>& peer = peers_[rank];
    if (!peer) continue;
    const base::Duration silence = now - peer->heard;
    if (silence > options_.timeout || (verdict && silence > together)) {
      result.lost.push_back(static_cast<Rank>(rank));
      peer.reset();
    } else if (peer->ping_due <= now) {
      result.ping.push_back(static_cast<Rank>(rank));
      peer->ping_due = peer->phase + ((now - peer->phase) / options_.interval + 1) * options_.interval;
    }
  }
  return result;
}

base::Time FailureDetector::next() const {
  base::Time next = base::Time::max();
  if (!last_tick_) return next;
  next = *last_tick_ + tick_;
  for (const std::optional<Watched>& peer : peers_)
    if (peer) next = std::min(next, peer->heard + options_.timeout + base::Duration(1));
  return next;
}

}  // namespace nexar::cluster
