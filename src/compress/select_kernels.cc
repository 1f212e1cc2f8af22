#include "compress/select_kernels.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/select_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "reduce/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nexar::compress::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// 64 elements against one limit. Magnitudes are non-negative as signed integers, so `at least limit` is `greater than limit - 1`, which
// every target compares, and which also holds for 0.
template <typename Signed>
HWY_INLINE std::uint64_t compare_word(const std::uint8_t* elements, std::uint64_t limit) {
  const hn::ScalableTag<Signed> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto below = hn::Set(d, static_cast<Signed>(limit - 1));
  const auto without_sign = hn::Set(d, std::numeric_limits<Signed>::max());
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < 64; i += lanes) {
    const auto magnitude = hn::And(reduce::HWY_NAMESPACE::load(d, elements + i * sizeof(Signed)), without_sign);
    std::uint8_t bits[8] = {};
    hn::StoreMaskBits(d, hn::Gt(magnitude, below), bits);
    word |= base::load_le<std::uint64_t>(reinterpret_cast<const std::byte*>(bits)) << i;
  }
  return word;
}

template <typename Signed>
void compare(const std::byte* elements, std::size_t count, std::uint64_t low, std::uint64_t high, std::uint64_t* low_bits,
             std::uint64_t* high_bits) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(elements);
  std::size_t at = 0;
  for (; count - at >= 64; at += 64) {
    const std::uint64_t word = compare_word<Signed>(bytes + at * sizeof(Signed), low);
    low_bits[at / 64] = word;
    high_bits[at / 64] = word == 0 ? 0 : compare_word<Signed>(bytes + at * sizeof(Signed), high);
  }
  if (at == count) return;
  std::uint8_t padded[64 * sizeof(Signed)] = {};
  std::memcpy(padded, bytes + at * sizeof(Signed), (count - at) * sizeof(Signed));
  const std::uint64_t present = (std::uint64_t{1} << (count - at)) - 1;
  low_bits[at / 64] = compare_word<Signed>(padded, low) & present;
  high_bits[at / 64] = compare_word<Signed>(padded, high) & present;
}

template <typename Signed>
void set_compare(SelectKernels& kernels) {
  kernels.compare = &compare<Signed>;
}

void fill(SelectKernels& kernels) {
  switch (kernels.element_bytes) {
    case 2: return set_compare<std::int16_t>(kernels);
    case 4: return set_compare<std::int32_t>(kernels);
    default: return set_compare<std::int64_t>(kernels);
  }
}

}  // namespace nexar::compress::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nexar::compress {
namespace {

HWY_EXPORT(fill);

// How a type's magnitudes are read; kNan is one above infinity.
template <typename Unsigned, Unsigned kNan>
std::uint64_t magnitude(const std::byte* element) {
  return std::min<std::uint64_t>(base::load_le<Unsigned>(element) & (static_cast<Unsigned>(~Unsigned{0}) >> 1), kNan);
}

// Scalar: no vector instruction counts. Neighbours often have the same digit, and a count cannot be raised again before its last store is
// through; so neighbours count in different tables.
template <typename Unsigned, Unsigned kNan>
void count_top_digit(const std::byte* elements, std::size_t count, Digit digit, std::uint32_t* counts) {
  constexpr std::size_t kTables = 4;
  const std::size_t size = std::size_t{1} << digit.bits;
  const auto digit_at = [&](std::size_t i) { return magnitude<Unsigned, kNan>(elements + i * sizeof(Unsigned)) >> digit.shift; };
  alignas(64) std::array<std::uint32_t, kTables << kDigitBitsMax> tables;
  std::fill_n(tables.begin(), kTables * size, 0u);
  std::size_t i = 0;
  for (; count - i >= kTables; i += kTables)
    for (std::size_t t = 0; t < kTables; ++t) ++tables[t * size + digit_at(i + t)];
  for (; i < count; ++i) ++tables[digit_at(i)];
  for (std::size_t t = 0; t < kTables; ++t)
    for (std::size_t d = 0; d < size; ++d) counts[d] += tables[t * size + d];
}

template <typename Unsigned, Unsigned kNan>
SelectKernels scalar_part() {
  return {.count_top_digit = &count_top_digit<Unsigned, kNan>,
          .compare = nullptr,
          .magnitude = &magnitude<Unsigned, kNan>,
          .element_bytes = sizeof(Unsigned),
          .magnitude_bits = 8 * static_cast<int>(sizeof(Unsigned)) - 1,
          .nan = kNan};
}

SelectKernels scalar_part_of(DataType type) {
  switch (type) {
    case DataType::kF32: return scalar_part<std::uint32_t, 0x7F800001u>();
    case DataType::kF64: return scalar_part<std::uint64_t, 0x7FF0000000000001u>();
    case DataType::kF16: return scalar_part<std::uint16_t, 0x7C01>();
    default: NEXAR_ASSERT(type == DataType::kBf16, "a float of 16 bits or more"); return scalar_part<std::uint16_t, 0x7F81>();
  }
}

SelectKernels make_of_chosen_target(DataType type) {
  SelectKernels kernels = scalar_part_of(type);
  HWY_DYNAMIC_DISPATCH(fill)(kernels);
  return kernels;
}

}  // namespace

const SelectKernels& select_kernels(DataType type) {
  static const std::array<SelectKernels, 4> kKernels = {make_of_chosen_target(DataType::kF32), make_of_chosen_target(DataType::kF64),
                                                        make_of_chosen_target(DataType::kF16), make_of_chosen_target(DataType::kBf16)};
  static_assert(static_cast<int>(DataType::kF32) == 0 && static_cast<int>(DataType::kBf16) == 3);
  return kKernels.at(static_cast<std::size_t>(type));
}

SelectKernels select_kernels_of(std::int64_t target, DataType type) {
  NEXAR_ASSERT((target & HWY_TARGETS) != 0, "the build carries the target");
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().DeInit();
  const SelectKernels kernels = make_of_chosen_target(type);
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
  return kernels;
}

}  // namespace nexar::compress
#endif
