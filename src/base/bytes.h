// Views of bytes and numbers in them. Everything of ours that leaves a process is little-endian.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <span>

namespace nexar::base {

using ByteView = std::span<const std::byte>;  // to read
using ByteSpan = std::span<std::byte>;        // to write

static_assert(std::endian::native == std::endian::little, "load_le and store_le copy: a big-endian machine needs a swap here");

// The number at `at`, which need not be aligned.
template <std::integral T>
T load_le(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <std::integral T>
void store_le(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

// a * b, or nothing when the product does not fit: sizes that come from a user or a peer are multiplied only with this.
template <std::unsigned_integral T>
constexpr std::optional<T> checked_multiply(T a, T b) {
  if (b != 0 && a > std::numeric_limits<T>::max() / b) return std::nullopt;
  return static_cast<T>(a * b);
}

}  // namespace nexar::base
