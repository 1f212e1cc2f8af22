// Elements of any compressible type as numbers to compute with: f64 for f64, f32 for the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

#include "base/assert.h"
#include "nexar/data_type.h"
#include "nexar/small_float.h"
#include "reduce/widen.h"

namespace nexar::compress {

template <typename T>
using Number = std::conditional_t<std::is_same_v<T, double>, double, float>;

constexpr bool is_compressible(DataType type) {
  return type == DataType::kF32 || type == DataType::kF64 || type == DataType::kF16 || type == DataType::kBf16;
}

// Bytes of the number that a type's elements are computed with.
constexpr std::size_t number_bytes(DataType type) { return type == DataType::kF64 ? sizeof(double) : sizeof(float); }

// f(T{}) for the C++ type of a compressible type.
template <typename F>
decltype(auto) with_type(DataType type, F&& f) {
  NEXAR_ASSERT(is_compressible(type), "integers and 8-bit floats are refused before they come here");
  switch (type) {
    case DataType::kF64: return f(double{});
    case DataType::kF16: return f(f16{});
    case DataType::kBf16: return f(bf16{});
    default: return f(float{});
  }
}

// `from` and `to` are elements at any alignment.
template <typename T>
void load(const std::byte* from, Number<T>* to, std::size_t count) {
  if constexpr (std::is_same_v<T, Number<T>>)
    std::memcpy(to, from, count * sizeof(T));
  else
    reduce::widen(data_type_of<T>, from, to, count);
}

template <typename T>
void store(const Number<T>* from, std::byte* to, std::size_t count) {
  if constexpr (std::is_same_v<T, Number<T>>)
    std::memcpy(to, from, count * sizeof(T));
  else
    reduce::narrow(data_type_of<T>, from, to, count);
}

// How many elements are converted at a time where nothing else decides: a few KiB, which stay in the first-level cache.
inline constexpr std::size_t kChunk = 512;

// f(first, n) for consecutive parts of at most `size` of `count` elements.
template <typename F>
void for_each_part(std::uint64_t count, std::uint64_t size, F&& f) {
  for (std::uint64_t first = 0; first < count; first += size)
    f(first, static_cast<std::size_t>(count - first < size ? count - first : size));
}

// residual[i] -= values[i] for n <= N elements at `residual`, rounded once, and +0 where that is not a number though something
// was sent.
template <typename T, std::size_t N>
void subtract_values(std::byte* residual, const Number<T>* values, std::size_t n) {
  Number<T> numbers[N];
  load<T>(residual, numbers, n);
  for (std::size_t i = 0; i < n; ++i) {
    const Number<T> rest = numbers[i] - values[i];
    numbers[i] = rest == rest || values[i] == 0 ? rest : Number<T>{0};
  }
  store<T>(numbers, residual, n);
}

// The same for one element that mostly equals its value, as one that was sent whole does: r - r is +0.
template <typename T>
void subtract_one(std::byte* residual, const std::byte* element) {
  if (std::memcmp(residual, element, sizeof(T)) == 0) {
    std::memset(residual, 0, sizeof(T));
    return;
  }
  Number<T> value;
  load<T>(element, &value, 1);
  subtract_values<T, 1>(residual, &value, 1);
}

// a * b + c, or the largest number where that does not fit.
constexpr std::uint64_t saturating(std::uint64_t a, std::uint64_t b, std::uint64_t c = 0) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  if (b != 0 && a > kMax / b) return kMax;
  return a * b > kMax - c ? kMax : a * b + c;
}

}  // namespace nexar::compress
