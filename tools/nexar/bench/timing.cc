#include "bench/timing.h"

#include <algorithm>
#include <cmath>

namespace nexar::bench {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds(Clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

// Sixteen, where they do not take for ever: first calls may try how the later ones are done best.
std::size_t warm_up_for(std::size_t bytes) {
  constexpr std::size_t kBytes = std::size_t{16} << 20;
  constexpr std::size_t kBytesMax = std::size_t{1} << 30;
  constexpr std::size_t kMessage = 64 << 10;  // what an iteration of no bytes counts for
  const std::size_t least = std::clamp<std::size_t>(kBytesMax / (bytes + 1), 3, 16);
  return std::clamp<std::size_t>(kBytes / (bytes + kMessage), least, 200);
}

std::size_t iterations_for(const Pace& pace, double each_us) {
  if (pace.iterations != 0) return pace.iterations;
  const double fitting = microseconds(pace.time) / std::max(each_us, 0.1);
  return std::clamp(static_cast<std::size_t>(fitting), Pace::kIterationsMin, Pace::kIterationsMax);
}

// The time of each iteration from that of each rank.
std::vector<double> over_ranks(const std::vector<double>& all, std::size_t ranks, bool slowest) {
  std::vector<double> times(all.size() / ranks, 0);
  for (std::size_t rank = 0; rank < ranks; ++rank)
    for (std::size_t i = 0; i < times.size(); ++i) {
      const double one = all[rank * times.size() + i];
      times[i] = slowest ? std::max(times[i], one) : times[i] + one / static_cast<double>(ranks);
    }
  return times;
}

}  // namespace

Timing measure(World& world, const Pace& pace, std::size_t bytes, bool apart, const std::function<void()>& once) {
  const auto timed = [&] {
    if (apart) world.barrier();
    const Clock::time_point start = Clock::now();
    once();
    return microseconds(Clock::now() - start);
  };
  world.barrier();
  const std::size_t warm_up = warm_up_for(bytes);
  const Clock::time_point start = Clock::now();
  for (std::size_t i = 0; i < warm_up; ++i) timed();
  const double each_us = microseconds(Clock::now() - start) / static_cast<double>(warm_up);
  const auto iterations = static_cast<std::size_t>(world.from_first(static_cast<double>(iterations_for(pace, each_us))));

  std::vector<double> own;
  own.reserve(iterations);
  world.barrier();
  for (std::size_t i = 0; i < iterations; ++i) own.push_back(timed());
  const std::vector<double> all = world.gather(own);
  if (all.empty()) return {};

  std::vector<double> times = over_ranks(all, static_cast<std::size_t>(world.size()), apart);
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times[times.size() * 99 / 100], times.size()};
}

}  // namespace nexar::bench
