#include "compress/feedback.h"

#include <utility>

#include <fmt/format.h>

#include "compress/guarded.h"
#include "compress/refusals.h"
#include "reduce/float_environment.h"
#include "reduce/reducer.h"

namespace nexar::compress {

Result<std::size_t> compress_with_feedback(const Compressor& compressor, base::ByteView gradient, base::ByteSpan residual, DataType type,
                                           const CompressionContext& context, base::ByteSpan out) {
  if (auto checked = check_room(compressor, gradient, type, out); !checked) return std::move(checked).error();
  const reduce::FloatEnvironment standard;
  const auto compress = [&](base::ByteView tensor) -> Result<std::size_t> {
    Result<std::size_t> length = guarded(compressor, [&] { return compressor.compress(tensor, type, context, out); });
    if (length && *length > compressor.bytes_max(tensor.size() / size_of(type), type))
      return Error(ErrorCode::kInternal, fmt::format("compressor {} wrote {} bytes, more than its bound", compressor.name(), *length));
    return length;
  };
  if (residual.empty()) return compress(gradient);

  if (residual.size() != gradient.size())
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("the residual has {} bytes and the gradient {}", residual.size(), gradient.size()));
  const Result<reduce::Reducer> sum = reduce::Reducer::make(type, ReduceOp::kSum);
  if (!sum) return sum.error();
  if (auto added = sum->combine(residual.data(), gradient.data(), residual.data(), residual.size() / size_of(type)); !added)
    return std::move(added).error();
  Result<std::size_t> length = compress(residual);
  if (!length) return length;
  if (auto taken = guarded(compressor, [&] { return compressor.subtract(out.first(*length), type, context, residual); }); !taken)
    return std::move(taken).error();
  return length;
}

}  // namespace nexar::compress
