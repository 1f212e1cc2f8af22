// The loops that every reduction runs through. Compiled once per target.
//
// A loop takes whole steps (as many elements as a Lanes class loads at once) while they fit; the rest goes through a padded copy and
// the same code, so that the tail has the semantics of the body and nothing outside the buffers is touched.
#if defined(NEXAR_REDUCE_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NEXAR_REDUCE_LOOPS_INL_H_
#undef NEXAR_REDUCE_LOOPS_INL_H_
#else
#define NEXAR_REDUCE_LOOPS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "reduce/kernels.h"
#include "reduce/lanes-inl.h"
#include "reduce/ops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nexar::reduce::HWY_NAMESPACE {

// One step of any type in any target fits.
inline constexpr std::size_t kStepBytesMax = 256;

template <class L>
HWY_INLINE std::size_t step_bytes() {
  return L::step() * L::kSize;
}

template <class L, class Op>
void pair_kernel(const void* left_buffer, const void* right_buffer, void* out_buffer, std::size_t count) {
  const auto* left = static_cast<const std::uint8_t*>(left_buffer);
  const auto* right = static_cast<const std::uint8_t*>(right_buffer);
  auto* out = static_cast<std::uint8_t*>(out_buffer);
  const auto d = L::compute();
  const std::size_t step = step_bytes<L>();
  const std::size_t end = count * L::kSize;

  std::size_t at = 0;
  for (; end - at >= L::kUnroll * step; at += L::kUnroll * step)
    for (std::size_t u = 0; u < L::kUnroll; ++u)
      L::set(combine<Op>(d, L::get(left + at + u * step), L::get(right + at + u * step)), out + at + u * step, false);
  for (; end - at >= step; at += step) L::set(combine<Op>(d, L::get(left + at), L::get(right + at)), out + at, false);
  if (at == end) return;

  HWY_ALIGN std::uint8_t padded_left[kStepBytesMax] = {};
  HWY_ALIGN std::uint8_t padded_right[kStepBytesMax] = {};
  std::memcpy(padded_left, left + at, end - at);
  std::memcpy(padded_right, right + at, end - at);
  L::set(combine<Op>(d, L::get(padded_left), L::get(padded_right)), padded_left, false);
  std::memcpy(out + at, padded_left, end - at);
}

// What is done to a result before it is rounded and stored.
struct Keep {
  HWY_INLINE explicit Keep(std::uint64_t) {}
  template <class D, class Wide>
  HWY_INLINE Wide apply(D, Wide w) const {
    return w;
  }
};

struct Divide {
  HWY_INLINE explicit Divide(std::uint64_t divisor) : divisor_(divisor) {}
  template <class D, class Wide>
  HWY_INLINE Wide apply(D d, Wide w) const {
    return divide(w, hn::Set(d, static_cast<hn::TFromD<D>>(divisor_)));
  }

 private:
  std::uint64_t divisor_;
};

// The sources, and the steps that reduce them at one place.
template <class L, class Op, class Finish>
class ManySources {
 public:
  HWY_INLINE ManySources(const void* const* sources, std::size_t count, std::uint64_t divisor)
      : sources_(sources), count_(count), finish_(divisor) {}

  HWY_INLINE void one_step(std::size_t at, std::uint8_t* to, bool streaming) const {
    const auto d = L::compute();
    auto sum = L::get(source(0) + at);
    for (std::size_t s = 1; s < count_; ++s) sum = combine<Op>(d, sum, L::get(source(s) + at));
    L::set(finish_.apply(d, sum), to, streaming);
  }

  // Four results at once, so that each source is read a few cache lines at a time.
  HWY_INLINE void four_steps(std::size_t at, std::uint8_t* to, bool streaming) const {
    const auto d = L::compute();
    const std::size_t step = step_bytes<L>();
    const std::uint8_t* from = source(0) + at;
    auto w = L::get(from);
    auto x = L::get(from + step);
    auto y = L::get(from + 2 * step);
    auto z = L::get(from + 3 * step);
    for (std::size_t s = 1; s < count_; ++s) {
      from = source(s) + at;
      w = combine<Op>(d, w, L::get(from));
      x = combine<Op>(d, x, L::get(from + step));
      y = combine<Op>(d, y, L::get(from + 2 * step));
      z = combine<Op>(d, z, L::get(from + 3 * step));
    }
    L::set(finish_.apply(d, w), to, streaming);
    L::set(finish_.apply(d, x), to + step, streaming);
    L::set(finish_.apply(d, y), to + 2 * step, streaming);
    L::set(finish_.apply(d, z), to + 3 * step, streaming);
  }

  // What is asked most often of little.
  HWY_INLINE void eight_bytes(std::size_t at, std::uint8_t* to) const {
    const auto d = L::compute();
    auto sum = L::get_eight(source(0) + at);
    for (std::size_t s = 1; s < count_; ++s) sum = combine<Op>(d, sum, L::get_eight(source(s) + at));
    L::set_eight(finish_.apply(d, sum), to);
  }

  // Less than a step. Some sources are padded before the first is read: a load that waits for the stores it overlaps then does not keep
  // the next one waiting as well, which is most of the time that a few bytes of many ranks take.
  void rest(std::size_t at, std::size_t bytes, std::uint8_t* to) const {
    if constexpr (requires { L::get_eight(to); })
      if (bytes == sizeof(std::uint64_t)) return eight_bytes(at, to);
    const auto d = L::compute();
    HWY_ALIGN std::uint8_t padded[kPaddedTogether][kStepBytesMax];
    std::memset(padded[0], 0, kStepBytesMax);  // there is always a source, which the compiler does not know
    std::size_t ready = pad(0, at, bytes, padded);
    auto sum = L::get(padded[0]);
    for (std::size_t k = 1; k < ready; ++k) sum = combine<Op>(d, sum, L::get(padded[k]));
    for (std::size_t s = ready; s < count_; s += ready) {
      ready = pad(s, at, bytes, padded);
      for (std::size_t k = 0; k < ready; ++k) sum = combine<Op>(d, sum, L::get(padded[k]));
    }
    L::set(finish_.apply(d, sum), padded[0], false);
    std::memcpy(to, padded[0], bytes);
  }

 private:
  static constexpr std::size_t kPaddedTogether = 8;

  // The sources from `first` on, as many as there are and fit; returns how many.
  HWY_INLINE std::size_t pad(std::size_t first, std::size_t at, std::size_t bytes,
                             std::uint8_t (&padded)[kPaddedTogether][kStepBytesMax]) const {
    const std::size_t number = count_ - first < kPaddedTogether ? count_ - first : kPaddedTogether;
    const std::size_t step = step_bytes<L>();
    for (std::size_t k = 0; k < number; ++k) {
      std::memset(padded[k], 0, step);
      std::memcpy(padded[k], source(first + k) + at, bytes);
    }
    return number;
  }

  HWY_INLINE const std::uint8_t* source(std::size_t s) const { return static_cast<const std::uint8_t*>(sources_[s]); }

  const void* const* sources_;
  std::size_t count_;
  Finish finish_;
};

// Bytes before the first whole step whose result is aligned for streaming; nothing can be streamed when elements straddle that.
template <class L>
HWY_INLINE std::size_t bytes_to_alignment(const std::uint8_t* out) {
  return (0 - reinterpret_cast<std::uintptr_t>(out)) % step_bytes<L>();
}

template <class L, class Op, class Finish = Keep>
void many_kernel(const void* const* sources, std::size_t source_count, void* out_buffer, std::size_t count, std::uint64_t divisor,
                 Store store) {
  const ManySources<L, Op, Finish> many(sources, source_count, divisor);
  auto* out = static_cast<std::uint8_t*>(out_buffer);
  const std::size_t step = step_bytes<L>();
  const std::size_t end = count * L::kSize;
  std::size_t at = 0;

  const std::size_t head = bytes_to_alignment<L>(out);
  if (store == Store::kStreaming && head % L::kSize == 0 && end > head + step) {
    if (head != 0) many.rest(0, head, out);
    at = head;
    if constexpr (L::kUnroll >= 4)
      for (; end - at >= 4 * step; at += 4 * step) many.four_steps(at, out + at, true);
    for (; end - at >= step; at += step) many.one_step(at, out + at, true);
    hwy::FlushStream();
  }
  if constexpr (L::kUnroll >= 4)
    for (; end - at >= 4 * step; at += 4 * step) many.four_steps(at, out + at, false);
  for (; end - at >= step; at += step) many.one_step(at, out + at, false);
  if (at != end) many.rest(at, end - at, out + at);
}

template <class L>
void widen_kernel(const void* from_buffer, float* to, std::size_t count) {
  const auto* from = static_cast<const std::uint8_t*>(from_buffer);
  const auto d = L::compute();
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; count - i >= lanes; i += lanes) store(d, L::widen(from + i * L::kSize), reinterpret_cast<std::uint8_t*>(to + i));
  if (i == count) return;
  HWY_ALIGN std::uint8_t codes[kStepBytesMax] = {};
  HWY_ALIGN float values[kStepBytesMax / sizeof(float)];
  std::memcpy(codes, from + i * L::kSize, (count - i) * L::kSize);
  store(d, L::widen(codes), reinterpret_cast<std::uint8_t*>(values));
  std::memcpy(to + i, values, (count - i) * sizeof(float));
}

template <class L>
void narrow_kernel(const float* from, void* to_buffer, std::size_t count) {
  auto* to = static_cast<std::uint8_t*>(to_buffer);
  const auto d = L::compute();
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; count - i >= lanes; i += lanes) L::narrow(load(d, reinterpret_cast<const std::uint8_t*>(from + i)), to + i * L::kSize);
  if (i == count) return;
  HWY_ALIGN std::uint8_t codes[kStepBytesMax];
  HWY_ALIGN float values[kStepBytesMax / sizeof(float)] = {};
  std::memcpy(values, from + i, (count - i) * sizeof(float));
  L::narrow(load(d, reinterpret_cast<const std::uint8_t*>(values)), codes);
  std::memcpy(to + i * L::kSize, codes, (count - i) * L::kSize);
}

template <class L, class Op>
Kernel kernel() {
  return {&pair_kernel<L, Op>, &many_kernel<L, Op>};
}

// `Add` is Sum or FusedSum. avg adds like sum; only where several meet at the end is there something to divide.
template <class L, class Add = Sum>
void fill_float_row(KernelTable& table, DataType type) {
  table.at(type, ReduceOp::kSum) = kernel<L, Add>();
  table.at(type, ReduceOp::kProd) = kernel<L, Prod>();
  table.at(type, ReduceOp::kMin) = kernel<L, Min>();
  table.at(type, ReduceOp::kMax) = kernel<L, Max>();
  table.at(type, ReduceOp::kAvg) = {&pair_kernel<L, Add>, &many_kernel<L, Add, Divide>};
}

template <class L, class Add = Sum>
void fill_small_float_row(KernelTable& table, DataType type) {
  fill_float_row<L, Add>(table, type);
  table.widen[static_cast<std::size_t>(type)] = &widen_kernel<L>;
  table.narrow[static_cast<std::size_t>(type)] = &narrow_kernel<L>;
}

}  // namespace nexar::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
