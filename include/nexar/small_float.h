// The 16- and 8-bit floating-point formats as C++ types: storage with conversions to and from float, no arithmetic.
//
//            sign exponent fraction   largest   infinity
//   f16        1      5       10        65504     yes      IEEE 754 binary16
//   bf16       1      8        7       3.4e38     yes      the upper half of an f32
//   f8e4m3     1      4        3          448     no       OCP FP8: finite, too large saturates, one NaN for each sign
//   f8e5m2     1      5        2        57344     yes      OCP FP8: IEEE-like
//
// Conversion from float rounds to nearest, ties to even; subnormals are kept and a NaN stays a NaN.
#pragma once

#include <bit>
#include <cstdint>

namespace nexar {

namespace detail {

template <typename Bits, int kExponentBits, int kFractionBits, bool kHasInfinity>
struct SmallFloatFormat {
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kDropped = 23 - kFractionBits;  // fraction bits of an f32 that do not fit
  static constexpr std::uint32_t kExponentMask = (1u << kExponentBits) - 1;
  static constexpr std::uint32_t kFractionMask = (1u << kFractionBits) - 1;
  static constexpr int kSignShift = kExponentBits + kFractionBits;
  // Without infinity the all-ones exponent holds numbers too, and only all ones in exponent and fraction is a NaN.
  static constexpr std::uint32_t kInfinity = kExponentMask << kFractionBits;
  static constexpr std::uint32_t kNan = kHasInfinity ? kInfinity | (1u << (kFractionBits - 1)) : kInfinity | kFractionMask;
  static constexpr std::uint32_t kTooLarge = kHasInfinity ? kInfinity : kNan - 1;

  static constexpr bool is_nan(std::uint32_t magnitude) { return kHasInfinity ? magnitude > kInfinity : magnitude == kNan; }

  static constexpr float widen(Bits bits) {
    const std::uint32_t sign = (static_cast<std::uint32_t>(bits) >> kSignShift) << 31;
    const std::uint32_t magnitude = static_cast<std::uint32_t>(bits) & ((1u << kSignShift) - 1);
    const std::uint32_t exponent = magnitude >> kFractionBits;
    if (is_nan(magnitude)) return std::bit_cast<float>(sign | 0x7FC00000u);
    if (kHasInfinity && magnitude == kInfinity) return std::bit_cast<float>(sign | 0x7F800000u);
    if (kExponentBits == 8) return std::bit_cast<float>(sign | (magnitude << kDropped));
    if (exponent == 0) {  // a subnormal here is a normal f32: fraction * 2^(1 - bias - fraction bits)
      const float unit = std::bit_cast<float>(static_cast<std::uint32_t>(127 + 1 - kBias - kFractionBits) << 23);
      const float value = static_cast<float>(magnitude) * unit;
      return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
    }
    return std::bit_cast<float>(sign | ((magnitude << kDropped) + (static_cast<std::uint32_t>(127 - kBias) << 23)));
  }

  static constexpr Bits narrow(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 31) << kSignShift;
    const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) return static_cast<Bits>(sign | kNan);
    return static_cast<Bits>(sign | round_magnitude(magnitude));
  }

 private:
  // The nearest representable magnitude of a number or infinity.
  static constexpr std::uint32_t round_magnitude(std::uint32_t magnitude) {
    const int exponent = static_cast<int>(magnitude >> 23) - 127 + kBias;  // in the small format's bias
    std::uint32_t significand = (magnitude & 0x7FFFFFu) | (magnitude >= 0x800000u ? 0x800000u : 0u);
    // Below the smallest normal the whole significand moves right, and its exponent field is zero.
    const bool subnormal = exponent < 1;
    int shift = kDropped + (subnormal ? 1 - exponent : 0);
    if (kExponentBits == 8 && magnitude < 0x800000u) shift = kDropped;  // an f32 subnormal is one here too
    if (shift > 24) return 0;                                           // less than half of the smallest subnormal
    const std::uint32_t kept = significand >> shift;
    const std::uint32_t rest = significand & ((1u << shift) - 1);
    const std::uint32_t half = 1u << (shift - 1);
    const std::uint32_t rounded = kept + ((rest > half || (rest == half && (kept & 1u))) ? 1u : 0u);
    // The implicit one of a normal significand adds itself to the exponent field, as does a carry out of rounding.
    const std::uint32_t result = subnormal ? rounded : (static_cast<std::uint32_t>(exponent - 1) << kFractionBits) + rounded;
    return result > kTooLarge ? kTooLarge : result;
  }
};

// One of the formats as a type of its own.
template <typename StoredBits, typename Format>
struct SmallFloat {
  using Bits = StoredBits;

  Bits bits = 0;

  constexpr SmallFloat() = default;
  explicit constexpr SmallFloat(float value) : bits(Format::narrow(value)) {}
  explicit constexpr operator float() const { return Format::widen(bits); }

  static constexpr SmallFloat from_bits(Bits bits) {
    SmallFloat result;
    result.bits = bits;
    return result;
  }

  // Compares storage: +0 differs from -0, and a NaN equals itself.
  friend constexpr bool operator==(SmallFloat, SmallFloat) = default;
};

}  // namespace detail

using f16 = detail::SmallFloat<std::uint16_t, detail::SmallFloatFormat<std::uint16_t, 5, 10, true>>;
using bf16 = detail::SmallFloat<std::uint16_t, detail::SmallFloatFormat<std::uint16_t, 8, 7, true>>;
using f8e4m3 = detail::SmallFloat<std::uint8_t, detail::SmallFloatFormat<std::uint8_t, 4, 3, false>>;
using f8e5m2 = detail::SmallFloat<std::uint8_t, detail::SmallFloatFormat<std::uint8_t, 5, 2, true>>;

static_assert(sizeof(f16) == 2 && sizeof(bf16) == 2 && sizeof(f8e4m3) == 1 && sizeof(f8e5m2) == 1);

}  // namespace nexar
