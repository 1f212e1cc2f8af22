// Adds up the compressed contributions of all ranks, in rank order, into one dense tensor.
//
// The sum starts from +0 and each contribution is added to it element by element, in f64 for f64 and in f32 for the others; elements that
// a sparse contribution does not hold are left alone. Whoever adds the same contributions in the same order gets the same bits.
//
// f32 and f64 are added up in the tensor itself; f16 and bf16 in f32 beside it, and are rounded once at the end.
//
// Thread: any, one at a time. The tensor belongs to the caller and stays where it is meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "nexar/compressor.h"

namespace nexar::compress {

class Accumulator {
 public:
  // Sets the sum to zero: what is in `tensor` is lost. kInvalidArgument when type and op are not reduced through the compressor, or the
  // tensor is not aligned.
  static Result<Accumulator> make(const Compressor& compressor, base::ByteSpan tensor, DataType type, ReduceOp op,
                                  const CompressionContext& context);

  // Adds what the next rank sent. After an error the sum is good for nothing.
  Result<void> add(base::ByteView compressed);

  // Leaves the result in the tensor, for avg divided by the number of contributions.
  Result<void> finish();

 private:
  Accumulator(const Compressor& compressor, base::ByteSpan tensor, DataType type, ReduceOp op, const CompressionContext& context);

  SumView sum() const;

  const Compressor* compressor_;
  base::ByteSpan tensor_;
  DataType type_;
  ReduceOp op_;
  CompressionContext context_;
  std::uint64_t added_ = 0;
  std::unique_ptr<float[]> wide_;  // the sum of f16 and bf16
};

}  // namespace nexar::compress
