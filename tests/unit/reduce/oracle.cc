#include "reduce/oracle.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "numbers/exact_values.h"

namespace nexar::test {
namespace {

template <typename F>
F combine_floats(ReduceOp op, F a, F b) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg: return a + b;
    case ReduceOp::kProd: return a * b;
    default: break;
  }
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<F>::quiet_NaN();
  const bool a_first = a < b || (a == b && std::signbit(a));  // -0 before +0
  return (op == ReduceOp::kMin) == a_first ? a : b;
}

template <typename F, typename Decode>
F reduce_floats(ReduceOp op, std::span<const Element64> inputs, std::uint64_t divisor, Decode decode) {
  F result = decode(inputs[0]);
  for (const Element64 input : inputs.subspan(1)) result = combine_floats<F>(op, result, decode(input));
  return op == ReduceOp::kAvg ? result / static_cast<F>(divisor) : result;
}

// Arithmetic in 64 bits, cut to T after each step: wraps like T.
template <typename T>
Element64 reduce_integers(ReduceOp op, std::span<const Element64> inputs, std::uint64_t divisor) {
  auto result = static_cast<T>(inputs[0]);
  for (const Element64 input : inputs.subspan(1)) {
    const auto next = static_cast<T>(input);
    const std::uint64_t a = static_cast<std::make_unsigned_t<T>>(result);
    const std::uint64_t b = static_cast<std::make_unsigned_t<T>>(next);
    switch (op) {
      case ReduceOp::kSum:
      case ReduceOp::kAvg: result = static_cast<T>(a + b); break;
      case ReduceOp::kProd: result = static_cast<T>(a * b); break;
      case ReduceOp::kMin: result = next < result ? next : result; break;
      case ReduceOp::kMax: result = next > result ? next : result; break;
      case ReduceOp::kAnd: result = static_cast<T>(a & b); break;
      case ReduceOp::kOr: result = static_cast<T>(a | b); break;
      case ReduceOp::kXor: result = static_cast<T>(a ^ b); break;
    }
  }
  if (op == ReduceOp::kAvg) {
    if constexpr (std::is_signed_v<T>)
      result = static_cast<T>(static_cast<std::int64_t>(result) / static_cast<std::int64_t>(divisor));
    else
      result = static_cast<T>(result / divisor);
  }
  return static_cast<std::make_unsigned_t<T>>(result);
}

Element64 reduce_bools(ReduceOp op, std::span<const Element64> inputs) {
  bool result = inputs[0] != 0;
  for (const Element64 input : inputs.subspan(1)) {
    const bool next = input != 0;
    if (op == ReduceOp::kXor)
      result = result != next;
    else if (op == ReduceOp::kSum || op == ReduceOp::kMax || op == ReduceOp::kOr)
      result = result || next;
    else
      result = result && next;
  }
  return result ? 1 : 0;
}

Element64 all_bits(DataType type) { return size_of(type) == 8 ? ~Element64{0} : (Element64{1} << (8 * size_of(type))) - 1; }

Element64 element_of(DataType type, double number) {
  if (type == DataType::kF64) return std::bit_cast<std::uint64_t>(number);
  if (type == DataType::kF32) return std::bit_cast<std::uint32_t>(static_cast<float>(number));
  return ExactFormat::of(type).nearest(static_cast<float>(number));
}

bool is_nan(DataType type, Element64 element) {
  if (type == DataType::kF64) return std::isnan(std::bit_cast<double>(element));
  if (type == DataType::kF32) return std::isnan(std::bit_cast<float>(static_cast<std::uint32_t>(element)));
  return is_float(type) && ExactFormat::of(type).is_nan(static_cast<std::uint32_t>(element));
}

}  // namespace

Element64 reduce_elements(DataType type, ReduceOp op, std::span<const Element64> inputs, std::uint64_t divisor) {
  switch (type) {
    case DataType::kF32:
      return std::bit_cast<std::uint32_t>(
          reduce_floats<float>(op, inputs, divisor, [](Element64 e) { return std::bit_cast<float>(static_cast<std::uint32_t>(e)); }));
    case DataType::kF64:
      return std::bit_cast<std::uint64_t>(reduce_floats<double>(op, inputs, divisor, [](Element64 e) { return std::bit_cast<double>(e); }));
    case DataType::kF16:
    case DataType::kBf16:
    case DataType::kF8e4m3:
    case DataType::kF8e5m2: {
      const ExactFormat& exact = ExactFormat::of(type);
      return exact.nearest(reduce_floats<float>(
          op, inputs, divisor, [&](Element64 e) { return static_cast<float>(exact.value(static_cast<std::uint32_t>(e))); }));
    }
    case DataType::kI8: return reduce_integers<std::int8_t>(op, inputs, divisor);
    case DataType::kI16: return reduce_integers<std::int16_t>(op, inputs, divisor);
    case DataType::kI32: return reduce_integers<std::int32_t>(op, inputs, divisor);
    case DataType::kI64: return reduce_integers<std::int64_t>(op, inputs, divisor);
    case DataType::kU8: return reduce_integers<std::uint8_t>(op, inputs, divisor);
    case DataType::kU16: return reduce_integers<std::uint16_t>(op, inputs, divisor);
    case DataType::kU32: return reduce_integers<std::uint32_t>(op, inputs, divisor);
    case DataType::kU64: return reduce_integers<std::uint64_t>(op, inputs, divisor);
    case DataType::kBool: return reduce_bools(op, inputs);
  }
  return 0;
}

bool same_element(DataType type, Element64 a, Element64 b) { return a == b || (is_nan(type, a) && is_nan(type, b)); }

Element64 load_element(DataType type, const std::uint8_t* buffer, std::size_t index) {
  Element64 element = 0;
  std::memcpy(&element, buffer + index * size_of(type), size_of(type));
  return element;
}

void store_element(DataType type, std::uint8_t* buffer, std::size_t index, Element64 element) {
  std::memcpy(buffer + index * size_of(type), &element, size_of(type));
}

std::vector<ReduceOp> ops_of(DataType type) {
  std::vector<ReduceOp> ops;
  for (const ReduceOp op : kReduceOps)
    if (check_reducible(type, op)) ops.push_back(op);
  return ops;
}

std::vector<Element64> special_elements(DataType type) {
  const Element64 all = all_bits(type);
  const Element64 top = all / 2 + 1;                                              // the sign bit
  std::vector<Element64> specials = {0, 1, all, top, top - 1, all - 1, top + 1};  // extremes and, for floats, subnormals, -0 and NaNs
  if (is_float(type))
    for (const double number : {1.0, -1.0, 0.5, 1.5, 3.0, 1e30, -1e30, 1e-30, 447.0, 448.0, 57344.0, 65504.0, static_cast<double>(INFINITY),
                                static_cast<double>(-INFINITY), static_cast<double>(NAN)})
      specials.push_back(element_of(type, number));
  return specials;
}

Element64 random_element(DataType type, std::mt19937_64& random) {
  static thread_local DataType specials_of = DataType::kBool;
  static thread_local std::vector<Element64> specials = special_elements(DataType::kBool);
  if (specials_of != type) {
    specials = special_elements(type);
    specials_of = type;
  }
  const std::uint64_t roll = random();
  if (roll % 4 == 0) return specials[(roll >> 8) % specials.size()];
  if (roll % 4 == 1 && is_float(type)) return element_of(type, std::ldexp(static_cast<double>((roll >> 8) % 2001) - 1000.0, -7));
  return random() & all_bits(type);
}

}  // namespace nexar::test
