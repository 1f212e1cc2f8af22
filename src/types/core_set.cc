#include "types/core_set.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/assert.h"

namespace nexar {

CoreSet::CoreSet(std::initializer_list<int> cores) {
  for (const int core : cores) add(core);
}

std::optional<CoreSet> CoreSet::from_bytes(base::ByteView bytes) {
  if (bytes.size() > kBytesMax || (!bytes.empty() && bytes.back() == std::byte{0})) return std::nullopt;
  CoreSet set;
  set.bytes_.assign(bytes.begin(), bytes.end());
  return set;
}

void CoreSet::add(int core) {
  NEXAR_ASSERT(core >= 0 && core < kCoreEnd, "a core that is not among those that a set can have is not known");
  const auto index = static_cast<std::size_t>(core);
  if (bytes_.size() <= index / 8) bytes_.resize(index / 8 + 1);
  bytes_[index / 8] |= std::byte{1} << (index % 8);
}

int CoreSet::size() const {
  int count = 0;
  for (const std::byte byte : bytes_) count += std::popcount(std::to_integer<std::uint8_t>(byte));
  return count;
}

bool CoreSet::meets(const CoreSet& other) const {
  const std::size_t common = std::min(bytes_.size(), other.bytes_.size());
  for (std::size_t i = 0; i < common; ++i)
    if ((bytes_[i] & other.bytes_[i]) != std::byte{0}) return true;
  return false;
}

}  // namespace nexar
