#include "native_loop.h"

#include <algorithm>
#include <cstdint>

namespace nexar::bench {
namespace {

template <typename T, typename F>
void loop(void* inout_buffer, const void* in_buffer, std::size_t count) {
  auto* inout = static_cast<T*>(inout_buffer);
  const auto* in = static_cast<const T*>(in_buffer);
  for (std::size_t i = 0; i < count; ++i) inout[i] = static_cast<T>(F()(inout[i], in[i]));
}

template <typename T>
struct Smaller {
  T operator()(T a, T b) const { return std::min(a, b); }
};
template <typename T>
struct Larger {
  T operator()(T a, T b) const { return std::max(a, b); }
};

template <typename T>
NativeLoop loop_for(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum: return loop<T, std::plus<>>;
    case ReduceOp::kProd: return loop<T, std::multiplies<>>;
    case ReduceOp::kMin: return loop<T, Smaller<T>>;
    case ReduceOp::kMax: return loop<T, Larger<T>>;
    default: return nullptr;
  }
}

}  // namespace

NativeLoop native_loop(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::kF32: return loop_for<float>(op);
    case DataType::kF64: return loop_for<double>(op);
    case DataType::kI8: return loop_for<std::int8_t>(op);
    case DataType::kI16: return loop_for<std::int16_t>(op);
    case DataType::kI32: return loop_for<std::int32_t>(op);
    case DataType::kI64: return loop_for<std::int64_t>(op);
    case DataType::kU8: return loop_for<std::uint8_t>(op);
    case DataType::kU16: return loop_for<std::uint16_t>(op);
    case DataType::kU32: return loop_for<std::uint32_t>(op);
    case DataType::kU64: return loop_for<std::uint64_t>(op);
    default: return nullptr;
  }
}

}  // namespace nexar::bench
