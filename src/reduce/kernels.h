// The kernels of one instruction set, by type and op.
//
// Every kernel is compiled for each target that the build carries (scalar, SSE4, AVX2, AVX-512; NEON on Arm); the best that the CPU
// can run is chosen once, when the first reduction is made. All targets give the same bits, any NaN counting as any NaN.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "nexar/data_type.h"
#include "nexar/reduce_op.h"

namespace nexar::reduce {

// How results reach memory.
enum class Store : std::uint8_t {
  kCached,     // through the caches: the result is used soon
  kStreaming,  // past them: the result is large and cold
};

// out[i] = op(left[i], right[i]). `out` is `left`, is `right`, or overlaps neither.
using PairKernel = void (*)(const void* left, const void* right, void* out, std::size_t count);

// out[i] = op(sources[0][i], sources[1][i], ...), evaluated from the left, in f32 for the small floats and rounded once; for avg also
// divided by `divisor`. At least one source; `out` is one of them or overlaps none.
using ManyKernel = void (*)(const void* const* sources, std::size_t source_count, void* out, std::size_t count, std::uint64_t divisor,
                            Store store);

using WidenKernel = void (*)(const void* from, float* to, std::size_t count);
using NarrowKernel = void (*)(const float* from, void* to, std::size_t count);

struct Kernel {
  PairKernel pair = nullptr;
  ManyKernel many = nullptr;
};

// Null where a combination has no meaning.
struct KernelTable {
  std::array<std::array<Kernel, kReduceOps.size()>, kDataTypes.size()> reduce{};
  std::array<WidenKernel, kDataTypes.size()> widen{};
  std::array<NarrowKernel, kDataTypes.size()> narrow{};

  Kernel& at(DataType type, ReduceOp op) { return reduce[static_cast<std::size_t>(type)][static_cast<std::size_t>(op)]; }
  const Kernel& at(DataType type, ReduceOp op) const { return reduce[static_cast<std::size_t>(type)][static_cast<std::size_t>(op)]; }
};

// The table of the best target, made on the first call.
const KernelTable& kernels();

// The targets that this build carries and this CPU can run, best first, and their names.
std::vector<std::int64_t> targets();
std::string_view target_name(std::int64_t target);

// The table of one target. For tests: while it is made, no other thread may ask for kernels.
KernelTable make_kernel_table(std::int64_t target);

}  // namespace nexar::reduce
