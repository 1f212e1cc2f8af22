#include "compress/refusals.h"

#include <string>
#include <utility>

#include <fmt/format.h>

namespace nexar::compress {
namespace {

Error invalid(std::string sentence) { return Error(ErrorCode::kInvalidArgument, std::move(sentence)); }

Result<void> check_type(const Compressor& compressor, DataType type) {
  if (is_compressible(type) && compressor.supports(type)) return {};
  if (!is_compressible(type))
    return invalid(fmt::format("{} compresses f32, f64, f16 and bf16, not {}", compressor.name(), to_string(type)));
  return invalid(fmt::format("{} does not compress {}", compressor.name(), to_string(type)));
}

}  // namespace

Result<void> check_tensor(const Compressor& compressor, base::ByteView tensor, DataType type) {
  if (auto checked = check_type(compressor, type); !checked) return checked;
  if (tensor.size() % size_of(type) != 0)
    return invalid(fmt::format("{} bytes are no whole number of elements of {}", tensor.size(), to_string(type)));
  return {};
}

Result<void> check_room(const Compressor& compressor, base::ByteView tensor, DataType type, base::ByteSpan out) {
  if (auto checked = check_tensor(compressor, tensor, type); !checked) return checked;
  if (const std::uint64_t needed = compressor.bytes_max(tensor.size() / size_of(type), type); out.size() < needed)
    return invalid(fmt::format("{} may need {} bytes and is given {}", compressor.name(), needed, out.size()));
  return {};
}

Result<void> check_sum(const Compressor& compressor, DataType type, const SumView& sum) {
  if (auto checked = check_type(compressor, type); !checked) return checked;
  if (std::holds_alternative<std::span<double>>(sum) != (type == DataType::kF64))
    return invalid(fmt::format("{} is added up in {}, and the sum is not", to_string(type), type == DataType::kF64 ? "f64" : "f32"));
  return {};
}

Result<void> check_length(const Compressor& compressor, base::ByteView compressed, std::uint64_t count, std::uint64_t needed) {
  if (compressed.size() == needed) return {};
  return invalid(fmt::format("{} of {} elements takes {} bytes and has {}", compressor.name(), count, needed, compressed.size()));
}

Result<void> check_ratio(std::string_view name, double ratio) {
  if (ratio > 0 && ratio <= 1) return {};  // a NaN is neither
  return invalid(fmt::format("the ratio of {} is above 0 and at most 1, not {}", name, ratio));
}

}  // namespace nexar::compress

namespace nexar {

Result<void> check_compressible(const Compressor& compressor, DataType type, ReduceOp op) {
  if (auto checked = compress::check_tensor(compressor, {}, type); !checked) return checked;
  if (op == ReduceOp::kSum || op == ReduceOp::kAvg) return {};
  return Error(ErrorCode::kInvalidArgument, fmt::format("compressed tensors are reduced by sum or avg, not {}", to_string(op)));
}

}  // namespace nexar
