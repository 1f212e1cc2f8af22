// How the elements of a type sit in a vector, and how they become what an op computes with.
//
// A Lanes class loads one step of elements into a Wide: one, two or four vectors of the type that is computed with, which is the type
// itself for f32, f64 and integers, and f32 for the small floats. Two 16-bit codes, or four 8-bit ones, share a 32-bit lane and are taken
// apart by shifts: no element crosses a lane, so the same source is right for every vector length, scalar included. widen() and narrow()
// convert consecutive elements in order, one vector of f32 at a time.
//
//   32-bit lane    | code 1 | code 0 |     f16, bf16:  a = code 0,  b = code 1
//                  | 3 | 2  | 1 | 0  |     f8:         a, b, c, d
//
// Compiled once per target: no include guard in the usual sense.
#if defined(NEXAR_REDUCE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NEXAR_REDUCE_LANES_INL_H_
#undef NEXAR_REDUCE_LANES_INL_H_
#else
#define NEXAR_REDUCE_LANES_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <hwy/highway.h>

// Conversions are long and stand many times in each loop. Sanitizers instrument every copy, and compilers then need minutes for a file.
#undef NEXAR_CONVERSION
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NEXAR_CONVERSION HWY_NOINLINE
#else
#define NEXAR_CONVERSION HWY_INLINE
#endif

HWY_BEFORE_NAMESPACE();
namespace nexar::reduce::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class V>
struct One {
  V a;
};
template <class V>
struct Two {
  V a, b;
};
template <class V>
struct Four {
  V a, b, c, d;
};

// Loads and stores at any address. The scalar target's own dereference the pointer, which must then be aligned.
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const std::uint8_t* from) {
  using T = hn::TFromD<D>;
#if HWY_TARGET == HWY_SCALAR
  T value;
  std::memcpy(&value, from, sizeof value);
  return hn::Set(d, value);
#else
  return hn::LoadU(d, reinterpret_cast<const T*>(from));
#endif
}

template <class D>
HWY_INLINE void store(D d, hn::Vec<D> v, std::uint8_t* to) {
  using T = hn::TFromD<D>;
#if HWY_TARGET == HWY_SCALAR
  const T value = hn::GetLane(v);
  std::memcpy(to, &value, sizeof value);
  (void)d;
#else
  hn::StoreU(v, d, reinterpret_cast<T*>(to));
#endif
}

// `to` is aligned to the vector.
template <class D>
HWY_INLINE void stream(D d, hn::Vec<D> v, std::uint8_t* to) {
#if HWY_TARGET == HWY_SCALAR
  store(d, v, to);
#else
  hn::Stream(v, d, reinterpret_cast<hn::TFromD<D>*>(to));
#endif
}

template <class D>
HWY_INLINE void put(D d, hn::Vec<D> v, std::uint8_t* to, bool streaming) {
  if (streaming)
    stream(d, v, to);
  else
    store(d, v, to);
}

// f32, f64 and integers: computed with as they are.
template <typename T>
struct NativeLanes {
  using D = hn::ScalableTag<T>;
  using Wide = One<hn::Vec<D>>;
  static constexpr std::size_t kSize = sizeof(T);
  static constexpr std::size_t kUnroll = 4;

  static HWY_INLINE D compute() { return D(); }
  static HWY_INLINE std::size_t step() { return hn::Lanes(D()); }
  static HWY_INLINE Wide get(const std::uint8_t* from) { return {load(D(), from)}; }
  static HWY_INLINE void set(Wide w, std::uint8_t* to, bool streaming) { put(D(), w.a, to, streaming); }

#if HWY_TARGET != HWY_SCALAR
  // Eight bytes alone, as many times as they fit: one instruction, and nothing beside them is read.
  static HWY_INLINE Wide get_eight(const std::uint8_t* from) {
    std::uint64_t word;
    std::memcpy(&word, from, sizeof word);
    return {hn::BitCast(D(), hn::Set(Words(), word))};
  }
  static HWY_INLINE void set_eight(Wide w, std::uint8_t* to) {
    const std::uint64_t word = hn::GetLane(hn::BitCast(Words(), w.a));
    std::memcpy(to, &word, sizeof word);
  }

 private:
  using Words = hn::Repartition<std::uint64_t, D>;
#endif
};

// bool: any non-zero byte is true, and results are 0 or 1.
struct BoolLanes : NativeLanes<std::uint8_t> {
  static HWY_INLINE Wide get(const std::uint8_t* from) { return {hn::Min(load(D(), from), hn::Set(D(), 1))}; }
#if HWY_TARGET != HWY_SCALAR
  static HWY_INLINE Wide get_eight(const std::uint8_t* from) { return {hn::Min(NativeLanes::get_eight(from).a, hn::Set(D(), 1))}; }
#endif
};

using DU = hn::ScalableTag<std::uint32_t>;
using DI = hn::ScalableTag<std::int32_t>;
using DF = hn::ScalableTag<float>;
using VU = hn::Vec<DU>;
using VI = hn::Vec<DI>;
using VF = hn::Vec<DF>;

// A small float's code to f32 and back, by integer arithmetic; see nexar/small_float.h for the formats. A code is in the low bits
// of its lane.
template <int kExponentBits, int kFractionBits, bool kHasInfinity>
struct Format {
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kDropped = 23 - kFractionBits;
  static constexpr int kSignShift = kExponentBits + kFractionBits;
  static constexpr std::int32_t kRebias = (127 - kBias) << 23;
  static constexpr std::int32_t kSmallestNormal = (127 - kBias + 1) << 23;                 // as f32 bits
  static constexpr std::int32_t kSubnormalUnit = (127 + 1 - kBias - kFractionBits) << 23;  // value of the lowest fraction bit, as f32 bits
  static constexpr std::int32_t kInfinity = ((1 << kExponentBits) - 1) << kFractionBits;
  static constexpr std::int32_t kNan = kHasInfinity ? kInfinity | (1 << (kFractionBits - 1)) : kInfinity | ((1 << kFractionBits) - 1);
  static constexpr std::int32_t kTooLarge = kHasInfinity ? kInfinity : kNan - 1;

  static NEXAR_CONVERSION VF widen(VU code) {
    const DI di;
    const DU du;
    const VU sign = hn::ShiftLeft<31 - kSignShift>(hn::And(code, hn::Set(du, 1u << kSignShift)));
    const VI magnitude = hn::BitCast(di, hn::And(code, hn::Set(du, (1u << kSignShift) - 1)));
    const VI shifted = hn::ShiftLeft<kDropped>(magnitude);
    const VF unit = hn::BitCast(DF(), hn::Set(di, kSubnormalUnit));
    const VI subnormal = hn::BitCast(di, hn::Mul(hn::ConvertTo(DF(), magnitude), unit));
    const VI normal = hn::Add(shifted, hn::Set(di, kRebias));
    VI value = hn::IfThenElse(hn::Lt(magnitude, hn::Set(di, 1 << kFractionBits)), subnormal, normal);
    if constexpr (kHasInfinity)  // an all-ones exponent stays one; the fraction tells infinity from NaN
      value = hn::IfThenElse(hn::Gt(magnitude, hn::Set(di, kInfinity - 1)), hn::Or(shifted, hn::Set(di, 0x7F800000)), value);
    else
      value = hn::IfThenElse(hn::Eq(magnitude, hn::Set(di, kNan)), hn::Set(di, 0x7FC00000), value);
    return hn::BitCast(DF(), hn::Or(hn::BitCast(du, value), sign));
  }

  static NEXAR_CONVERSION VU narrow(VF value) {
    const DI di;
    const DU du;
    const VU bits = hn::BitCast(du, value);
    const VU sign = hn::ShiftRight<31 - kSignShift>(hn::And(bits, hn::Set(du, 0x80000000u)));
    const VI magnitude = hn::BitCast(di, hn::And(bits, hn::Set(du, 0x7FFFFFFFu)));
    // Normal: add half of what is dropped, less one if that leaves it even, and shift. A carry walks into the exponent by itself.
    const VI odd = hn::And(hn::ShiftRight<kDropped>(magnitude), hn::Set(di, 1));
    const VI bias = hn::Set(di, (1 << (kDropped - 1)) - 1 - kRebias);
    const VI normal = hn::ShiftRight<kDropped>(hn::Add(magnitude, hn::Add(odd, bias)));
    // Subnormal: adding a number whose last bit is worth one subnormal unit makes the hardware round there.
    const VI anchor = hn::Set(di, kSubnormalUnit + (23 << 23));
    const VF sum = hn::Add(hn::BitCast(DF(), magnitude), hn::BitCast(DF(), anchor));
    const VI subnormal = hn::Sub(hn::BitCast(di, sum), anchor);
    VI code = hn::IfThenElse(hn::Lt(magnitude, hn::Set(di, kSmallestNormal)), subnormal, normal);
    code = hn::Min(code, hn::Set(di, kTooLarge));
    code = hn::IfThenElse(hn::Gt(magnitude, hn::Set(di, 0x7F800000)), hn::Set(di, kNan), code);
    return hn::Or(hn::BitCast(du, code), sign);
  }
};

// One code in each 32-bit lane, from and to consecutive codes in memory.
template <typename Code>
HWY_INLINE VU load_codes(const std::uint8_t* from) {
  return hn::PromoteTo(DU(), load(hn::Rebind<Code, DU>(), from));
}
template <typename Code>
HWY_INLINE void store_codes(VU codes, std::uint8_t* to) {
  const hn::Rebind<Code, DU> d;
  store(d, hn::DemoteTo(d, hn::BitCast(DI(), codes)), to);
}

// Two codes in each 32-bit lane.
template <class F>
struct HalfLanes {
  using Wide = Two<VF>;
  static constexpr std::size_t kSize = 2;
  static constexpr std::size_t kUnroll = 2;

  static HWY_INLINE DF compute() { return DF(); }
  static HWY_INLINE std::size_t step() { return 2 * hn::Lanes(DU()); }
  static HWY_INLINE Wide get(const std::uint8_t* from) {
    const VU codes = load(DU(), from);
    return {F::widen(hn::And(codes, hn::Set(DU(), 0xFFFFu))), F::widen(hn::ShiftRight<16>(codes))};
  }
  static HWY_INLINE void set(Wide w, std::uint8_t* to, bool streaming) {
    put(DU(), hn::Or(F::narrow(w.a), hn::ShiftLeft<16>(F::narrow(w.b))), to, streaming);
  }

  static HWY_INLINE VF widen(const std::uint8_t* from) { return F::widen(load_codes<std::uint16_t>(from)); }
  static HWY_INLINE void narrow(VF value, std::uint8_t* to) { store_codes<std::uint16_t>(F::narrow(value), to); }
};

// Four codes in each 32-bit lane.
template <class F>
struct QuarterLanes {
  using Wide = Four<VF>;
  static constexpr std::size_t kSize = 1;
  static constexpr std::size_t kUnroll = 1;

  static HWY_INLINE DF compute() { return DF(); }
  static HWY_INLINE std::size_t step() { return 4 * hn::Lanes(DU()); }
  static HWY_INLINE Wide get(const std::uint8_t* from) {
    const VU codes = load(DU(), from);
    const VU low = hn::Set(DU(), 0xFFu);
    return {F::widen(hn::And(codes, low)), F::widen(hn::And(hn::ShiftRight<8>(codes), low)),
            F::widen(hn::And(hn::ShiftRight<16>(codes), low)), F::widen(hn::ShiftRight<24>(codes))};
  }
  static HWY_INLINE void set(Wide w, std::uint8_t* to, bool streaming) {
    const VU ab = hn::Or(F::narrow(w.a), hn::ShiftLeft<8>(F::narrow(w.b)));
    const VU cd = hn::Or(hn::ShiftLeft<16>(F::narrow(w.c)), hn::ShiftLeft<24>(F::narrow(w.d)));
    put(DU(), hn::Or(ab, cd), to, streaming);
  }

  static HWY_INLINE VF widen(const std::uint8_t* from) { return F::widen(load_codes<std::uint8_t>(from)); }
  static HWY_INLINE void narrow(VF value, std::uint8_t* to) { store_codes<std::uint8_t>(F::narrow(value), to); }
};

// bf16 is the upper half of an f32, so widening is a shift and rounding an addition. A NaN needs no care: what arithmetic makes of
// widened operands is one of them or the default NaN, whose lower half is zero, and adding at most half of it carries nowhere.
struct Bf16Lanes {
  using Wide = Two<VF>;
  static constexpr std::size_t kSize = 2;
  static constexpr std::size_t kUnroll = 2;

  static HWY_INLINE DF compute() { return DF(); }
  static HWY_INLINE std::size_t step() { return 2 * hn::Lanes(DU()); }
  static HWY_INLINE Wide get(const std::uint8_t* from) {
    const VU codes = load(DU(), from);
    return {hn::BitCast(DF(), hn::ShiftLeft<16>(codes)), hn::BitCast(DF(), hn::And(codes, hn::Set(DU(), 0xFFFF0000u)))};
  }
  static HWY_INLINE void set(Wide w, std::uint8_t* to, bool streaming) {
    const VU low = hn::ShiftRight<16>(rounded(w.a));
    put(DU(), hn::OrAnd(low, rounded(w.b), hn::Set(DU(), 0xFFFF0000u)), to, streaming);
  }

  static HWY_INLINE VF widen(const std::uint8_t* from) { return hn::BitCast(DF(), hn::ShiftLeft<16>(load_codes<std::uint16_t>(from))); }
  // Here a NaN may be any, and is made one that rounding leaves alone.
  static HWY_INLINE void narrow(VF value, std::uint8_t* to) {
    const VU quiet = hn::And(hn::Or(hn::BitCast(DU(), value), hn::Set(DU(), 0x00400000u)), hn::Set(DU(), 0xFFFF0000u));
    const VF safe = hn::IfThenElse(hn::IsNaN(value), hn::BitCast(DF(), quiet), value);
    store_codes<std::uint16_t>(hn::ShiftRight<16>(rounded(safe)), to);
  }

 private:
  // The code in the upper half, the lower half undefined: adds half of the lower half, less one if the upper is even.
  static NEXAR_CONVERSION VU rounded(VF value) {
    const VU bits = hn::BitCast(DU(), value);
#if HWY_TARGET == HWY_AVX3  // a test and a blend, where the others need a shift, an and, and an addition
    const auto odd = hn::TestBit(bits, hn::Set(DU(), 0x10000u));
    return hn::Add(bits, hn::IfThenElse(odd, hn::Set(DU(), 0x8000u), hn::Set(DU(), 0x7FFFu)));
#else
    const VU odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(DU(), 1u));
    return hn::Add(bits, hn::Add(odd, hn::Set(DU(), 0x7FFFu)));
#endif
  }
};

// f16 where the CPU converts it: neighbours fill two vectors in order. Eight lanes are the widest that are converted at full speed: with
// 16, one of the two converters of an AVX-512 CPU goes idle.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
struct F16Lanes {
  using D = hn::CappedTag<float, 8>;
  using V = hn::Vec<D>;
  using Wide = Two<V>;
  static constexpr std::size_t kSize = 2;
  static constexpr std::size_t kUnroll = 2;

  static HWY_INLINE D compute() { return D(); }
  static HWY_INLINE std::size_t step() { return 2 * kLanes; }
  static HWY_INLINE Wide get(const std::uint8_t* from) { return {widen(from), widen(from + kSize * kLanes)}; }
  static HWY_INLINE void set(Wide w, std::uint8_t* to, bool streaming) {
    const hn::CappedTag<std::uint16_t, 2 * kLanes> d;
    put(d, hn::Combine(d, codes(w.b), codes(w.a)), to, streaming);
  }

  static HWY_INLINE V widen(const std::uint8_t* from) {
    return hn::PromoteTo(D(), hn::BitCast(hn::Rebind<hwy::float16_t, D>(), load(D16(), from)));
  }
  static HWY_INLINE void narrow(V value, std::uint8_t* to) { store(D16(), codes(value), to); }

 private:
  using D16 = hn::Rebind<std::uint16_t, D>;
  static constexpr std::size_t kLanes = 8;

  static HWY_INLINE hn::Vec<D16> codes(V value) { return hn::BitCast(D16(), hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), value)); }
};
#else
using F16Lanes = HalfLanes<Format<5, 10, true>>;
#endif

using F8e4m3Lanes = QuarterLanes<Format<4, 3, false>>;
using F8e5m2Lanes = QuarterLanes<Format<5, 2, true>>;

}  // namespace nexar::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
