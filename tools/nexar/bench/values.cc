#include "bench/values.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "nexar/small_float.h"

namespace nexar::bench {
namespace {

std::uint64_t mix(std::uint64_t value) {  // the finaliser of splitmix64
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
  return value ^ (value >> 31);
}

std::uint64_t next(std::uint64_t value) { return mix(value + 0x9E3779B97F4A7C15ull); }

// One byte that is 0 or 1.
struct Truth {
  std::uint8_t byte = 0;
};

template <typename T>
inline constexpr bool is_float_type = !std::is_integral_v<T> && !std::is_same_v<T, Truth>;

template <typename T>
using BitsOf =
    std::conditional_t<sizeof(T) == 1, std::uint8_t,
                       std::conditional_t<sizeof(T) == 2, std::uint16_t, std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

// How many whole numbers a float adds without rounding, and how large they may be for that: their product is the largest number up to
// which it has all of them.
template <typename T>
struct Addends {
  int count;
  std::uint64_t largest;
};
template <typename T>
constexpr Addends<T> addends() {
  if constexpr (std::is_same_v<T, f8e5m2>) return {4, 2};
  if constexpr (std::is_same_v<T, f8e4m3>) return {8, 2};
  if constexpr (std::is_same_v<T, bf16>) return {16, 16};
  if constexpr (std::is_same_v<T, f16>) return {32, 64};
  if constexpr (std::is_same_v<T, float>) return {1024, 1 << 14};
  if constexpr (std::is_same_v<T, double>) return {1024, 1ull << 43};
  // Integers are added for an average, which they must hold.
  return {16, static_cast<std::uint64_t>(std::numeric_limits<std::conditional_t<std::is_integral_v<T>, T, int>>::max()) / 16};
}

// Factors of a half, one or two whose product the narrowest float holds.
constexpr int kFactors = 8;

// Arithmetic of small floats is that of f32.
template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename T>
T from_double(double value) {
  if constexpr (std::is_arithmetic_v<T>) return static_cast<T>(value);
  if constexpr (!std::is_arithmetic_v<T>) return T(static_cast<float>(value));
}

// A random pattern that is a finite number: infinities and NaN are those with all ones in the exponent, or close to it.
template <typename T>
T finite(std::uint64_t hash) {
  auto bits = static_cast<BitsOf<T>>(hash);
  constexpr int kExponentTop = static_cast<int>(sizeof(T)) * 8 - 2;
  constexpr auto kTop = static_cast<BitsOf<T>>(BitsOf<T>{1} << kExponentTop);
  constexpr auto kNext = static_cast<BitsOf<T>>(kTop >> 1);
  if ((bits & kTop) != 0 && (bits & kNext) != 0) bits = static_cast<BitsOf<T>>(bits & ~kTop);
  return std::bit_cast<T>(bits);
}

// The patterns of floats in the order of their values, -0 before +0.
template <typename T>
std::uint64_t order_of(T value) {
  const auto bits = std::bit_cast<BitsOf<T>>(value);
  constexpr auto kSign = static_cast<BitsOf<T>>(BitsOf<T>{1} << (sizeof(T) * 8 - 1));
  return static_cast<BitsOf<T>>((bits & kSign) != 0 ? ~bits : bits | kSign);
}

// What one rank gives at one element.
template <typename T>
class Source {
 public:
  Source(std::optional<ReduceOp> op, int ranks, std::uint64_t seed) : op_(op), ranks_(ranks), seed_(mix(seed + 1)) {}

  // What all ranks' values of an element are made from.
  std::uint64_t place_of(std::uint64_t index) const { return next(seed_ ^ index); }

  T at(Rank rank, std::uint64_t place) const {
    const std::uint64_t hash = next(place + static_cast<std::uint64_t>(rank) * 0xD1342543DE82EF95ull);
    if (!op_) return pattern(hash);
    switch (*op_) {
      case ReduceOp::kAnd: return masked(hash, true);
      case ReduceOp::kOr:
      case ReduceOp::kXor: return masked(hash, *op_ == ReduceOp::kXor);
      default: break;
    }
    if constexpr (std::is_same_v<T, Truth>) {
      return masked(hash, *op_ == ReduceOp::kProd || *op_ == ReduceOp::kMin);
    } else {
      const bool adds = *op_ == ReduceOp::kAvg || (*op_ == ReduceOp::kSum && is_float_type<T>);
      if (adds) return is_among(rank, place, addends<T>().count) ? addend(hash) : T{};
      if (is_float_type<T> && *op_ == ReduceOp::kProd) return is_among(rank, place, kFactors) ? factor(hash) : from_double<T>(1);
      return pattern(hash);
    }
  }

 private:
  // Whether the rank is one of the few that have numbers at this place.
  bool is_among(Rank rank, std::uint64_t place, int few) const {
    if (ranks_ <= few) return true;
    const auto ranks = static_cast<std::uint64_t>(ranks_);
    return (static_cast<std::uint64_t>(rank) + place) % ranks < static_cast<std::uint64_t>(few);
  }

  static T pattern(std::uint64_t hash) {
    if constexpr (std::is_same_v<T, Truth>) return Truth{static_cast<std::uint8_t>(hash & 1)};
    if constexpr (std::is_integral_v<T>) return static_cast<T>(hash);
    if constexpr (is_float_type<T>) return finite<T>(hash);
  }

  // Bits of which, over all ranks, about one is a zero (`ones`) or a one: otherwise every `and` would be 0 and every `or` all ones.
  T masked(std::uint64_t hash, bool ones) const {
    std::uint64_t bits = hash;
    for (int ranks = ranks_; ranks > 2; ranks /= 2) {
      hash = next(hash);
      bits = ones ? bits | hash : bits & hash;
    }
    return pattern(bits);
  }

  static T addend(std::uint64_t hash) {
    const std::uint64_t magnitude = 1 + (hash >> 1) % addends<T>().largest;
    const bool negative = (hash & 1) != 0;
    if constexpr (std::is_integral_v<T>) return negative && std::is_signed_v<T> ? static_cast<T>(0 - magnitude) : static_cast<T>(magnitude);
    if constexpr (is_float_type<T>) return from_double<T>(negative ? -static_cast<double>(magnitude) : static_cast<double>(magnitude));
    return T{};
  }

  static T factor(std::uint64_t hash) {
    constexpr double kMagnitudes[] = {0.5, 1, 2};
    const double magnitude = kMagnitudes[(hash >> 1) % 3];
    if constexpr (is_float_type<T>) return from_double<T>((hash & 1) != 0 ? -magnitude : magnitude);
    return T{};
  }

  std::optional<ReduceOp> op_;
  int ranks_;
  std::uint64_t seed_;
};

template <typename T>
T float_identity(ReduceOp op) {
  if (op == ReduceOp::kProd) return from_double<T>(1);
  const double infinity = std::numeric_limits<double>::infinity();  // the format without one has its largest instead
  if (op == ReduceOp::kMin) return from_double<T>(infinity);
  if (op == ReduceOp::kMax) return from_double<T>(-infinity);
  return T{};
}

template <typename T>
T reduce_floats(const Source<T>& source, ReduceOp op, int ranks, std::uint64_t place) {
  if (ranks == 0) return float_identity<T>(op);
  const T first = source.at(0, place);
  if (op == ReduceOp::kMin || op == ReduceOp::kMax) {
    T best = first;
    for (Rank rank = 1; rank < ranks; ++rank) {
      const T value = source.at(rank, place);
      const bool less = order_of(value) < order_of(best);
      if (less == (op == ReduceOp::kMin)) best = value;
    }
    return best;
  }
  // Exact in double, so the order and the place of rounding make no difference.
  auto total = static_cast<double>(static_cast<Wide<T>>(first));
  for (Rank rank = 1; rank < ranks; ++rank) {
    const auto value = static_cast<double>(static_cast<Wide<T>>(source.at(rank, place)));
    total = op == ReduceOp::kProd ? total * value : total + value;
  }
  if (op == ReduceOp::kAvg) return from_double<T>(static_cast<Wide<T>>(total) / static_cast<Wide<T>>(ranks));
  return from_double<T>(total);
}

template <typename T>
T integer_identity(ReduceOp op) {
  switch (op) {
    case ReduceOp::kProd: return 1;
    case ReduceOp::kAnd: return static_cast<T>(~T{0});
    case ReduceOp::kMin: return std::numeric_limits<T>::max();
    case ReduceOp::kMax: return std::numeric_limits<T>::min();
    default: return 0;
  }
}

// In 64 bits, of which the type keeps the lowest.
template <typename T>
T combine_integers(ReduceOp op, T left, T right) {
  const auto a = static_cast<std::uint64_t>(left);
  const auto b = static_cast<std::uint64_t>(right);
  switch (op) {
    case ReduceOp::kProd: return static_cast<T>(a * b);
    case ReduceOp::kMin: return std::min(left, right);
    case ReduceOp::kMax: return std::max(left, right);
    case ReduceOp::kAnd: return static_cast<T>(a & b);
    case ReduceOp::kOr: return static_cast<T>(a | b);
    case ReduceOp::kXor: return static_cast<T>(a ^ b);
    default: return static_cast<T>(a + b);
  }
}

template <typename T>
T reduce_integers(const Source<T>& source, ReduceOp op, int ranks, std::uint64_t place) {
  T total = integer_identity<T>(op);
  for (Rank rank = 0; rank < ranks; ++rank) total = combine_integers(op, total, source.at(rank, place));
  if (op != ReduceOp::kAvg || ranks == 0) return total;
  using Widest = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  return static_cast<T>(static_cast<Widest>(total) / static_cast<Widest>(ranks));
}

Truth reduce_truths(const Source<Truth>& source, ReduceOp op, int ranks, std::uint64_t place) {
  const bool all = op == ReduceOp::kProd || op == ReduceOp::kMin || op == ReduceOp::kAnd;
  bool total = all;
  for (Rank rank = 0; rank < ranks; ++rank) {
    const bool value = source.at(rank, place).byte != 0;
    if (op == ReduceOp::kXor)
      total = total != value;
    else
      total = all ? total && value : total || value;
  }
  return Truth{static_cast<std::uint8_t>(total)};
}

template <typename T>
T reduce_at(const Source<T>& source, ReduceOp op, int ranks, std::uint64_t place) {
  if constexpr (std::is_same_v<T, Truth>) return reduce_truths(source, op, ranks, place);
  if constexpr (std::is_integral_v<T>) return reduce_integers(source, op, ranks, place);
  if constexpr (is_float_type<T>) return reduce_floats(source, op, ranks, place);
}

// Calls with a value of the C++ type that the elements have.
template <typename F>
void with_type(DataType type, const F& use) {
  switch (type) {
    case DataType::kF32: return use(float{});
    case DataType::kF64: return use(double{});
    case DataType::kF16: return use(f16{});
    case DataType::kBf16: return use(bf16{});
    case DataType::kI8: return use(std::int8_t{});
    case DataType::kI16: return use(std::int16_t{});
    case DataType::kI32: return use(std::int32_t{});
    case DataType::kI64: return use(std::int64_t{});
    case DataType::kU8: return use(std::uint8_t{});
    case DataType::kU16: return use(std::uint16_t{});
    case DataType::kU32: return use(std::uint32_t{});
    case DataType::kU64: return use(std::uint64_t{});
    case DataType::kF8e4m3: return use(f8e4m3{});
    case DataType::kF8e5m2: return use(f8e5m2{});
    case DataType::kBool: return use(Truth{});
  }
}

}  // namespace

void Values::fill(Rank rank, std::uint64_t first, std::uint64_t count, std::byte* out) const {
  with_type(type_, [&]<typename T>(T) {
    const Source<T> source(op_, ranks_, seed_);
    for (std::uint64_t i = 0; i < count; ++i) {
      const T value = source.at(rank, source.place_of(first + i));
      std::memcpy(out + i * sizeof(T), &value, sizeof(T));
    }
  });
}

void Values::reduce(int ranks, std::uint64_t first, std::uint64_t count, std::byte* out) const {
  with_type(type_, [&]<typename T>(T) {
    const Source<T> source(op_, ranks_, seed_);
    for (std::uint64_t i = 0; i < count; ++i) {
      const T value = reduce_at(source, *op_, ranks, source.place_of(first + i));
      std::memcpy(out + i * sizeof(T), &value, sizeof(T));
    }
  });
}

}  // namespace nexar::bench
