// How collectives are timed: one way for nexar and for every peer that it is set beside.
//
// After some iterations to warm up come as many as fit into a given time, and each rank notes how long each of them took it. Where all
// ranks wait for each other, iterations follow one another at once, and an iteration's time is the mean over the ranks: their sum is then
// the time that passed. Where somebody may run ahead of the others (the root of a broadcast), a barrier that is not timed comes before each
// iteration, and its time is that of the slowest rank.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace nexar::bench {

// What a measurement needs of the ranks that take part. Each runtime that is measured has one; what fails throws.
class World {
 public:
  virtual ~World() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void barrier() = 0;

  // Every rank's numbers at rank 0, in rank order; nothing elsewhere. All ranks give equally many.
  virtual std::vector<double> gather(std::span<const double> own) = 0;

  // Rank 0's number, on all ranks.
  virtual double from_first(double value) = 0;
};

struct Pace {
  std::size_t iterations = 0;                                      // 0: as many as fit
  std::chrono::nanoseconds time = std::chrono::milliseconds(200);  // into this, within the bounds below
  static constexpr std::size_t kIterationsMin = 12;                // of which the median means something
  static constexpr std::size_t kIterationsMax = 5000;
};

struct Timing {
  double median_us = 0;
  double p99_us = 0;  // of few iterations the slowest
  std::size_t iterations = 0;
};

// All ranks call it, with the same arguments; the result is rank 0's. `bytes` only says how long to warm up; `apart` puts a barrier before
// each iteration.
Timing measure(World& world, const Pace& pace, std::size_t bytes, bool apart, const std::function<void()>& once);

}  // namespace nexar::bench
