#include "reduce/identity.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>

namespace nexar::reduce {
namespace {

using Bytes = std::array<unsigned char, 8>;  // one element of any type, in its first bytes

template <typename T>
Bytes bytes_of(T value) {
  Bytes bytes{};
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// `zero`, `one`, `least` and `largest` of a type; `ones` is all bits set.
template <typename T>
Bytes choose(ReduceOp op, T zero, T one, T least, T largest) {
  switch (op) {
    case ReduceOp::kProd: return bytes_of(one);
    case ReduceOp::kMin: return bytes_of(largest);
    case ReduceOp::kMax: return bytes_of(least);
    case ReduceOp::kAnd: {
      Bytes ones;
      ones.fill(0xFF);
      return ones;
    }
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
    case ReduceOp::kOr:
    case ReduceOp::kXor: break;
  }
  return bytes_of(zero);
}

template <typename T>
Bytes integer(ReduceOp op) {
  return choose<T>(op, 0, 1, std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max());
}

template <typename T>
Bytes floating(ReduceOp op) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();  // f8e4m3 has none: it becomes the largest value
  return choose<T>(op, T(0.0f), T(1.0f), T(-kInfinity), T(kInfinity));
}

Bytes identity(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::kF32: return floating<float>(op);
    case DataType::kF64: return floating<double>(op);
    case DataType::kF16: return floating<f16>(op);
    case DataType::kBf16: return floating<bf16>(op);
    case DataType::kF8e4m3: return floating<f8e4m3>(op);
    case DataType::kF8e5m2: return floating<f8e5m2>(op);
    case DataType::kI8: return integer<std::int8_t>(op);
    case DataType::kI16: return integer<std::int16_t>(op);
    case DataType::kI32: return integer<std::int32_t>(op);
    case DataType::kI64: return integer<std::int64_t>(op);
    case DataType::kU8: return integer<std::uint8_t>(op);
    case DataType::kU16: return integer<std::uint16_t>(op);
    case DataType::kU32: return integer<std::uint32_t>(op);
    case DataType::kU64: return integer<std::uint64_t>(op);
    case DataType::kBool: return op == ReduceOp::kAnd ? bytes_of(true) : choose<bool>(op, false, true, false, true);
  }
  return {};
}

}  // namespace

Result<void> fill_identity(DataType type, ReduceOp op, void* buffer, std::size_t count) {
  if (auto checked = check_reducible(type, op); !checked) return checked;
  const Bytes element = identity(type, op);
  const std::size_t size = size_of(type);
  auto* out = static_cast<unsigned char*>(buffer);
  for (std::size_t i = 0; i < count; ++i) std::memcpy(out + i * size, element.data(), size);
  return {};
}

}  // namespace nexar::reduce
