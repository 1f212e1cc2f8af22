// The two loops over a whole tensor that selecting its largest elements takes.
//
// A magnitude is an element's bits without the sign. As an integer it orders floats as they are ordered, with infinity above every number.
// Every NaN has the magnitude after infinity, because payloads differ between CPUs and selection must not.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nexar/data_type.h"

namespace nexar::compress {

// Elements in one call of compare(): their two bitmaps stay in the first-level cache.
inline constexpr std::size_t kCompareMax = 4096;
inline constexpr std::size_t kCompareWords = kCompareMax / 64;

// The digit of a magnitude that a histogram counts.
struct Digit {
  int shift;  // of its lowest bit
  int bits;   // at most kDigitBitsMax

  std::uint64_t of(std::uint64_t magnitude) const { return (magnitude >> shift) & ((std::uint64_t{1} << bits) - 1); }
};

// Four tables of 32-bit counts fill the first-level cache.
inline constexpr int kDigitBitsMax = 11;

struct SelectKernels {
  // counts[d] += how many elements have the digit d, which is the topmost one.
  void (*count_top_digit)(const std::byte* elements, std::size_t count, Digit digit, std::uint32_t* counts);

  // Bit i of `low_bits` tells whether the magnitude of element i is at least `low`, for count <= kCompareMax elements and zero for what is
  // missing of the last word; `high_bits` for `high` >= `low`. Knows nothing of NaN: both limits come from limit().
  void (*compare)(const std::byte* elements, std::size_t count, std::uint64_t low, std::uint64_t high, std::uint64_t* low_bits,
                  std::uint64_t* high_bits);

  std::uint64_t (*magnitude)(const std::byte* element);

  std::size_t element_bytes;
  int magnitude_bits;  // all but the sign
  std::uint64_t nan;   // the magnitude of a NaN, the largest there is

  // What the bits of an element are compared with to find those of at least a magnitude.
  std::uint64_t limit(std::uint64_t least) const { return least <= nan ? least : std::uint64_t{1} << magnitude_bits; }
};

// Of f32, f64, f16 or bf16, for the best target. The second is for tests: while it runs, no other thread may ask for kernels.
const SelectKernels& select_kernels(DataType type);
SelectKernels select_kernels_of(std::int64_t target, DataType type);

}  // namespace nexar::compress
