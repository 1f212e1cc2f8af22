// Integers of every width, and bool.
#include "reduce/rows.h"

#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/integer_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "reduce/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace nexar::reduce::HWY_NAMESPACE {

// The quotients of a block, truncated towards zero. Up to 32 bits an f64 holds every operand and the quotient is never rounded across an
// integer, so this is exact; the compiler makes vectors of it.
template <typename T>
void divide_block(T* block, std::size_t count, std::uint64_t divisor) {
  if constexpr (sizeof(T) <= 4) {
    const double by = static_cast<double>(divisor);
    for (std::size_t i = 0; i < count; ++i) block[i] = static_cast<T>(static_cast<double>(block[i]) / by);
  } else {
    const T by = static_cast<T>(divisor);
    for (std::size_t i = 0; i < count; ++i) block[i] = block[i] / by;
  }
}

// Sums and divides a block at a time, while it is in the cache.
template <typename T>
void average_many(const void* const* sources, std::size_t source_count, void* out_buffer, std::size_t count, std::uint64_t divisor, Store) {
  constexpr std::size_t kBlock = 2048 / sizeof(T);
  HWY_ALIGN T block[kBlock];
  auto* out = static_cast<std::uint8_t*>(out_buffer);
  for (std::size_t at = 0; at < count; at += kBlock) {
    const std::size_t n = count - at < kBlock ? count - at : kBlock;
    std::memcpy(block, static_cast<const std::uint8_t*>(sources[0]) + at * sizeof(T), n * sizeof(T));
    for (std::size_t s = 1; s < source_count; ++s)
      pair_kernel<NativeLanes<std::make_unsigned_t<T>>, Sum>(block, static_cast<const std::uint8_t*>(sources[s]) + at * sizeof(T), block,
                                                             n);
    divide_block(block, n, divisor);
    std::memcpy(out + at * sizeof(T), block, n * sizeof(T));
  }
}

// Most ops do not care about the sign, so signed types share the kernels of the unsigned ones.
template <typename Signed, typename Unsigned>
void fill_integer_row(KernelTable& table, DataType signed_type, DataType unsigned_type) {
  using L = NativeLanes<Unsigned>;
  for (const DataType type : {signed_type, unsigned_type}) {
    table.at(type, ReduceOp::kSum) = kernel<L, Sum>();
    table.at(type, ReduceOp::kProd) = kernel<L, Prod>();
    table.at(type, ReduceOp::kAnd) = kernel<L, And>();
    table.at(type, ReduceOp::kOr) = kernel<L, Or>();
    table.at(type, ReduceOp::kXor) = kernel<L, Xor>();
  }
  table.at(signed_type, ReduceOp::kMin) = kernel<NativeLanes<Signed>, Min>();
  table.at(signed_type, ReduceOp::kMax) = kernel<NativeLanes<Signed>, Max>();
  table.at(unsigned_type, ReduceOp::kMin) = kernel<L, Min>();
  table.at(unsigned_type, ReduceOp::kMax) = kernel<L, Max>();
  table.at(signed_type, ReduceOp::kAvg) = {&pair_kernel<L, Sum>, &average_many<Signed>};
  table.at(unsigned_type, ReduceOp::kAvg) = {&pair_kernel<L, Sum>, &average_many<Unsigned>};
}

void fill_bool_row(KernelTable& table) {
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kOr}) table.at(DataType::kBool, op) = kernel<BoolLanes, Or>();
  for (const ReduceOp op : {ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kAnd}) table.at(DataType::kBool, op) = kernel<BoolLanes, And>();
  table.at(DataType::kBool, ReduceOp::kXor) = kernel<BoolLanes, Xor>();
}

void fill_integers(KernelTable& table) {
  fill_integer_row<std::int8_t, std::uint8_t>(table, DataType::kI8, DataType::kU8);
  fill_integer_row<std::int16_t, std::uint16_t>(table, DataType::kI16, DataType::kU16);
  fill_integer_row<std::int32_t, std::uint32_t>(table, DataType::kI32, DataType::kU32);
  fill_integer_row<std::int64_t, std::uint64_t>(table, DataType::kI64, DataType::kU64);
  fill_bool_row(table);
}

}  // namespace nexar::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nexar::reduce {
HWY_EXPORT(fill_integers);
void fill_integer_rows(KernelTable& table) { HWY_DYNAMIC_DISPATCH(fill_integers)(table); }
}  // namespace nexar::reduce
#endif
