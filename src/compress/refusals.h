// The checks that built-in compressors make alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "base/bytes.h"
#include "compress/elements.h"
#include "nexar/compressor.h"

namespace nexar::compress {

// Whether `tensor` is whole elements of a type that `compressor` supports, and `out`, where there is one, has room for every outcome.
Result<void> check_tensor(const Compressor& compressor, base::ByteView tensor, DataType type);
Result<void> check_room(const Compressor& compressor, base::ByteView tensor, DataType type, base::ByteSpan out);

// Whether `sum` is of the numbers that `type` is added up in.
Result<void> check_sum(const Compressor& compressor, DataType type, const SumView& sum);

// Whether the form of `count` elements has the one length it can have.
Result<void> check_length(const Compressor& compressor, base::ByteView compressed, std::uint64_t count, std::uint64_t needed);

// kInvalidArgument unless 0 < ratio <= 1; `name` is the compressor's.
Result<void> check_ratio(std::string_view name, double ratio);

inline std::uint64_t size_of_sum(const SumView& sum) {
  return std::visit([](auto numbers) { return static_cast<std::uint64_t>(numbers.size()); }, sum);
}

// The numbers of a sum that check_sum() has passed.
template <typename N>
std::span<N> numbers_of(const SumView& sum) {
  return std::get<std::span<N>>(sum);
}

}  // namespace nexar::compress
