#include "compress/accumulator.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>
#include <variant>

#include <fmt/format.h>

#include "compress/elements.h"
#include "compress/guarded.h"
#include "compress/refusals.h"
#include "reduce/float_environment.h"

namespace nexar::compress {

Result<Accumulator> Accumulator::make(const Compressor& compressor, base::ByteSpan tensor, DataType type, ReduceOp op,
                                      const CompressionContext& context) {
  if (auto checked = check_compressible(compressor, type, op); !checked) return std::move(checked).error();
  if (auto checked = check_tensor(compressor, tensor, type); !checked) return std::move(checked).error();
  if (reinterpret_cast<std::uintptr_t>(tensor.data()) % size_of(type) != 0)
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("a tensor of {} stands at an address that is no multiple of {}", to_string(type), size_of(type)));
  Accumulator made(compressor, tensor, type, op, context);
  if (size_of(type) == 2) {
    const std::size_t count = tensor.size() / size_of(type);
    made.wide_.reset(new (std::nothrow) float[count]());
    if (made.wide_ == nullptr)
      return Error(ErrorCode::kOverloaded, fmt::format("no memory for the sum of {} elements of {}", count, to_string(type)));
  } else if (!tensor.empty()) {
    std::memset(tensor.data(), 0, tensor.size());
  }
  return made;
}

Accumulator::Accumulator(const Compressor& compressor, base::ByteSpan tensor, DataType type, ReduceOp op, const CompressionContext& context)
    : compressor_(&compressor), tensor_(tensor), type_(type), op_(op), context_(context) {}

SumView Accumulator::sum() const {
  const std::size_t count = tensor_.size() / size_of(type_);
  if (type_ == DataType::kF64) return std::span(reinterpret_cast<double*>(tensor_.data()), count);
  return std::span(wide_ != nullptr ? wide_.get() : reinterpret_cast<float*>(tensor_.data()), count);
}

Result<void> Accumulator::add(base::ByteView compressed) {
  const reduce::FloatEnvironment standard;
  ++added_;
  return guarded(*compressor_, [&] { return compressor_->add(compressed, type_, context_, sum()); });
}

Result<void> Accumulator::finish() {
  const reduce::FloatEnvironment standard;
  if (op_ == ReduceOp::kAvg && added_ > 0)
    std::visit(
        [&](auto numbers) {
          for (auto& number : numbers) number /= static_cast<std::remove_reference_t<decltype(number)>>(added_);
        },
        sum());
  if (wide_ != nullptr) reduce::narrow(type_, wide_.get(), tensor_.data(), tensor_.size() / size_of(type_));
  return {};
}

}  // namespace nexar::compress
