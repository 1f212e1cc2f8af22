#include "nexar/compressor.h"

#include <limits>
#include <memory>
#include <new>
#include <span>

#include <fmt/format.h>

#include "compress/accumulator.h"
#include "compress/elements.h"
#include "compress/refusals.h"
#include "reduce/float_environment.h"

namespace nexar {
namespace {

constexpr std::uint64_t kContributionHeaderBytes = 8;  // how long it is

}  // namespace

Compressor::~Compressor() = default;

bool Compressor::supports(DataType type) const { return compress::is_compressible(type); }

std::uint64_t Compressor::scratch_bytes(std::uint64_t count, DataType type) const {
  return compress::saturating(count, compress::number_bytes(type));
}

Result<void> Compressor::subtract(std::span<const std::byte> compressed, DataType type, const CompressionContext& context,
                                  std::span<std::byte> residual) const {
  if (auto checked = compress::check_tensor(*this, residual, type); !checked) return checked;
  const reduce::FloatEnvironment standard;
  return compress::with_type(type, [&]<typename T>(T) -> Result<void> {
    using N = compress::Number<T>;
    const std::size_t count = residual.size() / sizeof(T);
    const std::unique_ptr<N[]> values(new (std::nothrow) N[count]());
    if (values == nullptr) return Error(ErrorCode::kOverloaded, fmt::format("no memory to decompress {} elements", count));
    if (auto added = add(compressed, type, context, std::span<N>(values.get(), count)); !added) return added;
    compress::for_each_part(count, compress::kChunk, [&](std::uint64_t first, std::size_t n) {
      compress::subtract_values<T, compress::kChunk>(residual.data() + first * sizeof(T), values.get() + first, n);
    });
    return {};
  });
}

Result<void> Compressor::decompress(std::span<const std::byte> compressed, DataType type, const CompressionContext& context,
                                    std::span<std::byte> tensor) const {
  Result<compress::Accumulator> sum = compress::Accumulator::make(*this, tensor, type, ReduceOp::kSum, context);
  if (!sum) return sum.error();
  if (auto added = sum->add(compressed); !added) return added;
  return sum->finish();
}

Result<std::uint64_t> compressed_all_reduce_bytes(std::uint64_t ranks, std::uint64_t count, DataType type, const Compressor& compressor) {
  if (auto checked = compress::check_tensor(compressor, {}, type); !checked) return std::move(checked).error();
  const std::uint64_t wide = size_of(type) == 2 ? compress::saturating(count, compress::number_bytes(type)) : 0;
  const std::uint64_t beside = compress::saturating(1, wide, compressor.scratch_bytes(count, type));
  const std::uint64_t contribution = compress::saturating(1, compressor.bytes_max(count, type), kContributionHeaderBytes);
  const std::uint64_t bytes = compress::saturating(compressor.sends_elements() ? 1 : ranks, contribution, beside);
  if (bytes == std::numeric_limits<std::uint64_t>::max())
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{} elements of {} from {} ranks are more bytes than there are numbers for", count, to_string(type), ranks));
  return bytes;
}

}  // namespace nexar
