// Each op on vectors. Compiled once per target.
#if defined(NEXAR_REDUCE_OPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NEXAR_REDUCE_OPS_INL_H_
#undef NEXAR_REDUCE_OPS_INL_H_
#else
#define NEXAR_REDUCE_OPS_INL_H_
#endif

#include <cstdint>
#include <type_traits>

#include <hwy/highway.h>

#include "reduce/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nexar::reduce::HWY_NAMESPACE {

struct Sum {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a, V b) {
    return hn::Add(a, b);
  }
};

// The same sum, to the bit, as a fused multiply-add by one. Where an addition competes with conversions for a CPU's ports, this does not.
struct FusedSum {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V a, V b) {
    return hn::MulAdd(a, hn::Set(d, hn::TFromD<D>{1}), b);
  }
};

// The lower half of the product. Highway multiplies 16- and 32-bit integers; the others are put together from those.
template <class D, class V>
HWY_INLINE V multiply_integers(D d, V a, V b) {
  using T = hn::TFromD<D>;
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(d, static_cast<T>(static_cast<std::uint64_t>(hn::GetLane(a)) * static_cast<std::uint64_t>(hn::GetLane(b))));
#else
  if constexpr (sizeof(T) == 1) {  // odd and even bytes as the low halves of 16-bit products
    const hn::Repartition<std::uint16_t, D> d16;
    const auto a16 = hn::BitCast(d16, a);
    const auto b16 = hn::BitCast(d16, b);
    const auto even = hn::And(hn::Mul(a16, b16), hn::Set(d16, 0x00FF));
    const auto odd = hn::ShiftLeft<8>(hn::Mul(hn::ShiftRight<8>(a16), hn::ShiftRight<8>(b16)));
    return hn::BitCast(d, hn::Or(even, odd));
  } else if constexpr (sizeof(T) == 8) {  // schoolbook, without the product of the upper halves, which does not fit
    const hn::Repartition<std::uint32_t, D> d32;
    const auto a32 = hn::BitCast(d32, a);
    const auto b32 = hn::BitCast(d32, b);
    const auto low = hn::MulEven(a32, b32);
    const auto cross =
        hn::Add(hn::MulEven(hn::BitCast(d32, hn::ShiftRight<32>(a)), b32), hn::MulEven(a32, hn::BitCast(d32, hn::ShiftRight<32>(b))));
    return hn::Add(low, hn::ShiftLeft<32>(cross));
  } else {
    return hn::Mul(a, b);
  }
#endif
}

struct Prod {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V a, V b) {
    if constexpr (std::is_floating_point_v<hn::TFromD<D>>)
      return hn::Mul(a, b);
    else
      return multiply_integers(d, a, b);
  }
};

// The instructions for float minima disagree about NaN and signed zero. Spelled out: the smaller one if there is one; otherwise the two are
// equal, or -0 and +0, or one is NaN, and the or of their bits is right in each case: the same number, -0, a NaN.
struct Min {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a, V b) {
    if constexpr (std::is_floating_point_v<hn::TFromD<D>>)
      return hn::IfThenElse(hn::Lt(a, b), a, hn::IfThenElse(hn::Lt(b, a), b, hn::Or(a, b)));
    else
      return hn::Min(a, b);
  }
};

struct Max {
  template <class D, class V>
  static HWY_INLINE V apply(D d, V a, V b) {
    if constexpr (std::is_floating_point_v<hn::TFromD<D>>)
      return hn::Neg(Min::apply(d, hn::Neg(a), hn::Neg(b)));
    else
      return hn::Max(a, b);
  }
};

struct And {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a, V b) {
    return hn::And(a, b);
  }
};

struct Or {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a, V b) {
    return hn::Or(a, b);
  }
};

struct Xor {
  template <class D, class V>
  static HWY_INLINE V apply(D, V a, V b) {
    return hn::Xor(a, b);
  }
};

// An op on each vector of a Wide.
template <class Op, class D, class V>
HWY_INLINE One<V> combine(D d, One<V> x, One<V> y) {
  return {Op::apply(d, x.a, y.a)};
}
template <class Op, class D, class V>
HWY_INLINE Two<V> combine(D d, Two<V> x, Two<V> y) {
  return {Op::apply(d, x.a, y.a), Op::apply(d, x.b, y.b)};
}
template <class Op, class D, class V>
HWY_INLINE Four<V> combine(D d, Four<V> x, Four<V> y) {
  return {Op::apply(d, x.a, y.a), Op::apply(d, x.b, y.b), Op::apply(d, x.c, y.c), Op::apply(d, x.d, y.d)};
}

template <class V>
HWY_INLINE One<V> divide(One<V> x, V by) {
  return {hn::Div(x.a, by)};
}
template <class V>
HWY_INLINE Two<V> divide(Two<V> x, V by) {
  return {hn::Div(x.a, by), hn::Div(x.b, by)};
}
template <class V>
HWY_INLINE Four<V> divide(Four<V> x, V by) {
  return {hn::Div(x.a, by), hn::Div(x.b, by), hn::Div(x.c, by), hn::Div(x.d, by)};
}

}  // namespace nexar::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
