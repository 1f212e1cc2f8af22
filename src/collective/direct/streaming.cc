#include "collective/direct/streaming.h"

#include <algorithm>
#include <bit>
#include <chrono>

namespace nexar::collective::direct {

Streaming::Learned& Streaming::learned(const Kind& kind) {
  const auto size = static_cast<std::size_t>(std::bit_width(kind.bytes / kFrom));
  return learned_[static_cast<std::size_t>(kind.operation)][kind.lends ? 1 : 0][std::clamp<std::size_t>(size, 1, kSizes) - 1];
}

// A way has been tried often enough: on to the next one, or to the best.
void Streaming::turn(Learned& one, std::uint32_t way, std::uint32_t ways, Way tuned) {
  if (way == 0) {
    one.tried = tuned;
    one.best_time = kNever;
  } else if (way == 1 || one.tried_time < kWorthwhile * one.best_time) {
    one.best = one.tried;
    one.best_time = one.tried_time;
  }
  one.tried_time = one.first_time = kNever;
  if (way == ways)
    one.tried = one.best;
  else if (way == 1)
    one.tried = {!tuned.in, ways == 2 ? tuned.out : !tuned.out};
  else if (way == 2)
    one.tried = {!tuned.in, tuned.out};
  else if (way == 3)
    one.tried = {tuned.in, !tuned.out};
}

Streaming::Trial Streaming::begin(const Kind& kind, Way tuned) {
  Learned& one = learned(kind);
  const std::uint32_t call = one.calls++ % kPeriod;
  const std::uint32_t of_way = calls_of_way(kind.bytes);
  const std::uint32_t trials = Streaming::trials(kind.bytes);
  if (call <= trials && call % of_way == 0) turn(one, call / of_way, ways(kind.bytes), tuned);
  Trial trial;
  const bool hopeless = call % of_way > 1 && std::min(one.first_time, one.tried_time) > kHopeless * one.best_time;
  trial.way_ = hopeless ? one.best : one.tried;
  if (call >= trials || hopeless) return trial;
  trial.learned_ = &one;
  trial.is_first_ = call % of_way == 0;
  trial.clock_ = &clock_;
  trial.bytes_ = kind.bytes;
  trial.begun_ = clock_.now();
  return trial;
}

void Streaming::end(const Trial& trial) {
  if (trial.learned_ == nullptr) return;
  const std::chrono::duration<float, std::nano> time = clock_.now() - trial.begun_;
  float& least = trial.is_first_ ? trial.learned_->first_time : trial.learned_->tried_time;
  least = std::min(least, time.count() / static_cast<float>(trial.bytes_));
}

}  // namespace nexar::collective::direct
