// Compressors turn a gradient into few bytes and back. What they leave out stays in a residual and is sent later (error feedback).
//
//   std::shared_ptr<const Compressor> compressor = Compressor::top_k(0.01).value();
//
// A residual has the shape of the gradient, belongs to the caller and is zero before the first call. Each call does
// `r += g; c = select(r); r -= decompress(c)`, so nothing is lost: it comes later. docs/compression.md has the arithmetic and every form
// byte by byte.
//
// f32, f64, f16 and bf16 are compressed, sum and avg are the ops. Contributions are added up in f64 for f64 and in f32 for the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <variant>

#include "nexar/data_type.h"
#include "nexar/export.h"
#include "nexar/ids.h"
#include "nexar/reduce_op.h"
#include "nexar/result.h"

namespace nexar {

// Which call a tensor is compressed for. Equal on all ranks of the call: what a compressor draws at random follows from it alone.
struct CompressionContext {
  std::uint64_t group = 0;  // id of the group
  Sequence sequence = 0;    // of the call
  std::uint64_t seed = 0;   // the application's own

  friend bool operator==(const CompressionContext&, const CompressionContext&) = default;
};

// A dense sum in the making: f64 for a tensor of f64, f32 for all other types.
using SumView = std::variant<std::span<float>, std::span<double>>;

// Thread: any; a compressor is a value without state and may be used by many calls at once.
//
// An application's own compressor derives from this class. Its functions run inside the runtime: they may not block or call nexar; what
// they throw ends the operation with an error. Buffers have any alignment, sums are aligned.
class NEXAR_API Compressor {
 public:
  // Everything, at dense cost.
  static std::shared_ptr<const Compressor> none();
  // The k = clamp(ceil(count * ratio), 1, count) elements of largest magnitude, ties by lower index; a NaN is larger than infinity.
  // kInvalidArgument unless 0 < ratio <= 1.
  static Result<std::shared_ptr<const Compressor>> top_k(double ratio);
  // As many elements at positions drawn at random, the same on every rank, so that only values travel.
  static Result<std::shared_ptr<const Compressor>> random_k(double ratio);
  // One byte for each element and a scale for each block of 256: integers of equal steps, or f8e4m3, finer near zero.
  static std::shared_ptr<const Compressor> int8();
  static std::shared_ptr<const Compressor> fp8();
  // One bit for each element, its sign, and a scale for each block of 1024, the mean magnitude.
  static std::shared_ptr<const Compressor> sign();

  virtual ~Compressor();

  // What ranks compare, parameters included: "top_k(0.01)".
  virtual std::string_view name() const = 0;

  // Whether it compresses tensors of `type`: f32, f64, f16 and bf16 unless overridden, which can only take away.
  virtual bool supports(DataType type) const;

  // Whether the compressed form is elements of the tensor's type and nothing else, at places that are the same on every rank of a call.
  // Then the elements themselves are reduced, and their sum or mean is the form of the result.
  virtual bool sends_elements() const { return false; }

  // The most bytes that compress() writes for `count` elements; the largest number when no number is large enough.
  virtual std::uint64_t bytes_max(std::uint64_t count, DataType type) const = 0;

  // The most bytes that one call of any function allocates while it runs. Unless overridden, a dense sum: what subtract() takes.
  virtual std::uint64_t scratch_bytes(std::uint64_t count, DataType type) const;

  // Writes the compressed form of `tensor`, whole elements of `type`, to the front of `out`, which has bytes_max() bytes or more, and
  // returns its length. An empty tensor is compressed like any other.
  virtual Result<std::size_t> compress(std::span<const std::byte> tensor, DataType type, const CompressionContext& context,
                                       std::span<std::byte> out) const = 0;

  // sum[i] += decompress(compressed)[i], where the sum has one element for each of the tensor's, in one order on all machines. Whatever
  // `compressed` holds, because a peer sent it: kInvalidArgument, saying what is wrong, before anything is added.
  virtual Result<void> add(std::span<const std::byte> compressed, DataType type, const CompressionContext& context, SumView sum) const = 0;

  // residual -= decompress(compressed), rounded to `type`, and +0 where that is not a number though something was sent: a NaN or infinity
  // is told once. Unless overridden, by way of add().
  virtual Result<void> subtract(std::span<const std::byte> compressed, DataType type, const CompressionContext& context,
                                std::span<std::byte> residual) const;

  // tensor = decompress(compressed), rounded to `type`.
  Result<void> decompress(std::span<const std::byte> compressed, DataType type, const CompressionContext& context,
                          std::span<std::byte> tensor) const;

  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;

 protected:
  Compressor() = default;
};

// Whether tensors of `type` are reduced with `op` through `compressor`; kInvalidArgument names what is not.
NEXAR_API Result<void> check_compressible(const Compressor& compressor, DataType type, ReduceOp op);

// The most memory, beside the caller's buffers, that one rank of `ranks` uses for a compressed all_reduce: every rank's contribution (one,
// where elements are sent) and 8 bytes each, the sum where the tensor itself cannot hold it, and the compressor's scratch.
// kInvalidArgument when no number is large enough.
NEXAR_API Result<std::uint64_t> compressed_all_reduce_bytes(std::uint64_t ranks, std::uint64_t count, DataType type,
                                                            const Compressor& compressor);

}  // namespace nexar
