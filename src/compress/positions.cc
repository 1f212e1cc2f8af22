#include "compress/positions.h"

#include "base/assert.h"

namespace nexar::compress {

std::uint32_t SplitMix64::below(std::uint32_t n) {
  const std::uint32_t unfair = static_cast<std::uint32_t>(-n) % n;  // 2^32 mod n
  for (;;) {
    const std::uint64_t product = (next() >> 32) * n;
    if (static_cast<std::uint32_t>(product) >= unfair) return static_cast<std::uint32_t>(product >> 32);
  }
}

Positions Positions::draw(const CompressionContext& context, std::uint64_t shard, std::uint32_t n, std::uint32_t k) {
  NEXAR_ASSERT(k <= n, "no more are drawn than there are");
  Positions positions(n);
  if (n == 0) return positions;
  SplitMix64 random(
      SplitMix64::mix(SplitMix64::mix(SplitMix64::mix(SplitMix64::mix(context.group) + context.sequence) + context.seed) + shard));
  const bool inverse = k > n - k;
  for (std::uint32_t left = inverse ? n - k : k; left > 0;) {
    const std::uint32_t position = random.below(n);
    std::uint64_t& word = positions.words_[position / 64];
    const std::uint64_t bit = std::uint64_t{1} << (position % 64);
    if ((word & bit) != 0) continue;
    word |= bit;
    --left;
  }
  if (!inverse) return positions;
  for (std::uint64_t& word : positions.words_) word = ~word;
  if (n % 64 != 0) positions.words_.back() &= (std::uint64_t{1} << (n % 64)) - 1;
  return positions;
}

}  // namespace nexar::compress
