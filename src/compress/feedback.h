// Error feedback: what a compressor leaves out of this call is added to the next.
#pragma once

#include <cstddef>

#include "base/bytes.h"
#include "nexar/compressor.h"

namespace nexar::compress {

// residual += gradient; out = compress(residual); residual -= decompress(out). Returns the length of the compressed form at the front of
// `out`, which has compressor.bytes_max() bytes or more. Each of the two changes of the residual is rounded once to `type`; where the
// second is not a number though something was sent, +0 stays. After kInvalidArgument the residual is as it was or, when the compressor
// itself failed, has taken the gradient.
//
// Without a residual (empty, for a gradient that is not) the gradient itself is compressed, and what is left out is lost.
Result<std::size_t> compress_with_feedback(const Compressor& compressor, base::ByteView gradient, base::ByteSpan residual, DataType type,
                                           const CompressionContext& context, base::ByteSpan out);

}  // namespace nexar::compress
