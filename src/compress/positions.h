// Positions drawn at random, the same on every machine: integer arithmetic only.
//
// The generator is SplitMix64. Its state starts as mix(mix(mix(mix(group) + sequence) + seed) + shard), where mix() is the generator's own
// output function. A number below n < 2^32 is drawn from the upper 32 bits x of an output: it is (x * n) >> 32, and x is drawn again while
// (x * n) mod 2^32 < 2^32 mod n, so every number is equally likely.
//
// k of n positions are drawn one by one, those drawn before being passed over, so every set of k is equally likely. Of more than half,
// those that stay out are drawn instead. That takes at most 2 ln 2 draws for each on average, and a bitmap of n bits puts them in order.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "nexar/compressor.h"

namespace nexar::compress {

class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t state) : state_(state) {}

  static constexpr std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }

  std::uint64_t next() { return mix(state_ += 0x9E3779B97F4A7C15u); }

  // 0 < n < 2^32.
  std::uint32_t below(std::uint32_t n);

 private:
  std::uint64_t state_;
};

// A set of positions below n; allocates n bits.
class Positions {
 public:
  static Positions draw(const CompressionContext& context, std::uint64_t shard, std::uint32_t n, std::uint32_t k);
  static std::uint64_t bytes(std::uint64_t n) { return (n + 63) / 64 * sizeof(std::uint64_t); }

  // f(position), ascending.
  template <typename F>
  void for_each(F&& f) const {
    for (std::size_t word = 0; word < words_.size(); ++word)
      for (std::uint64_t bits = words_[word]; bits != 0; bits &= bits - 1) f(word * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
  }

 private:
  explicit Positions(std::uint32_t n) : words_((std::size_t{n} + 63) / 64) {}

  std::vector<std::uint64_t> words_;
};

}  // namespace nexar::compress
