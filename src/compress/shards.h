// How many elements a sparse compressor keeps, and how a tensor too long for 32-bit indices is cut.
#pragma once

#include <algorithm>
#include <cstdint>

#include "nexar/compressed_tensor.h"

namespace nexar::compress {

// A shard has as many elements as k can count; the last one has the rest. An empty tensor is one empty shard.
inline constexpr std::uint64_t kShardElements = CompressedTensor::kCountMax;

// clamp(ceil(count * ratio), 1, count), the product rounded to f64; 0 of nothing. `count` is of one shard.
std::uint32_t kept(std::uint64_t count, double ratio);

// Walks over the shards of `count` elements: f(number, first, n) returns false to stop.
template <typename F>
void for_each_shard(std::uint64_t count, std::uint64_t shard_elements, F&& f) {
  std::uint64_t number = 0;
  std::uint64_t first = 0;
  do {
    const std::uint64_t n = std::min(count - first, shard_elements);
    if (!f(number, first, n)) return;
    first += n;
    ++number;
  } while (first < count);
}

}  // namespace nexar::compress
