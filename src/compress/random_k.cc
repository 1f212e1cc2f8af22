#include "compress/random_k.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "compress/elements.h"
#include "compress/positions.h"
#include "compress/refusals.h"
#include "reduce/float_environment.h"

namespace nexar::compress {

RandomK::RandomK(double ratio, std::uint64_t shard_elements)
    : ratio_(ratio), shard_elements_(shard_elements), name_(fmt::format("random_k({})", ratio)) {}

template <typename F>
void RandomK::for_each_position(std::uint64_t count, const CompressionContext& context, F&& f) const {
  for_each_shard(count, shard_elements_, [&](std::uint64_t number, std::uint64_t first, std::uint64_t n) {
    Positions::draw(context, number, static_cast<std::uint32_t>(n), kept(n, ratio_)).for_each([&](std::size_t i) { f(first + i); });
    return true;
  });
}

std::uint64_t RandomK::bytes_max(std::uint64_t count, DataType type) const {
  const std::uint64_t whole = count / shard_elements_;
  return saturating(saturating(whole, kept(shard_elements_, ratio_), kept(count % shard_elements_, ratio_)), size_of(type));
}

std::uint64_t RandomK::scratch_bytes(std::uint64_t count, DataType) const { return Positions::bytes(std::min(count, shard_elements_)); }

Result<std::size_t> RandomK::compress(base::ByteView tensor, DataType type, const CompressionContext& context, base::ByteSpan out) const {
  if (auto checked = check_room(*this, tensor, type, out); !checked) return std::move(checked).error();
  std::byte* at = out.data();
  with_type(type, [&]<typename T>(T) {
    for_each_position(tensor.size() / sizeof(T), context, [&](std::uint64_t i) {
      std::memcpy(at, tensor.data() + i * sizeof(T), sizeof(T));
      at += sizeof(T);
    });
  });
  return static_cast<std::size_t>(at - out.data());
}

Result<void> RandomK::add(base::ByteView compressed, DataType type, const CompressionContext& context, SumView sum) const {
  if (auto checked = check_sum(*this, type, sum); !checked) return checked;
  const std::uint64_t count = size_of_sum(sum);
  if (auto checked = check_length(*this, compressed, count, bytes_max(count, type)); !checked) return checked;
  const reduce::FloatEnvironment standard;
  with_type(type, [&]<typename T>(T) {
    Number<T>* numbers = numbers_of<Number<T>>(sum).data();
    const std::byte* at = compressed.data();
    Number<T> values[kChunk];
    std::size_t taken = kChunk;  // of the values: when all are, more are widened
    for_each_position(count, context, [&](std::uint64_t i) {
      if (taken == kChunk) {
        const auto left = static_cast<std::size_t>(compressed.data() + compressed.size() - at) / sizeof(T);
        load<T>(at, values, std::min(left, kChunk));
        at += std::min(left, kChunk) * sizeof(T);
        taken = 0;
      }
      numbers[i] += values[taken++];
    });
  });
  return {};
}

Result<void> RandomK::subtract(base::ByteView compressed, DataType type, const CompressionContext& context, base::ByteSpan residual) const {
  if (auto checked = check_tensor(*this, residual, type); !checked) return checked;
  const std::uint64_t count = residual.size() / size_of(type);
  if (auto checked = check_length(*this, compressed, count, bytes_max(count, type)); !checked) return checked;
  const reduce::FloatEnvironment standard;
  with_type(type, [&]<typename T>(T) {
    const std::byte* at = compressed.data();
    for_each_position(count, context, [&](std::uint64_t i) {
      subtract_one<T>(residual.data() + i * sizeof(T), at);
      at += sizeof(T);
    });
  });
  return {};
}

}  // namespace nexar::compress

namespace nexar {

Result<std::shared_ptr<const Compressor>> Compressor::random_k(double ratio) {
  if (auto checked = compress::check_ratio("random_k", ratio); !checked) return std::move(checked).error();
  return std::shared_ptr<const Compressor>(std::make_shared<compress::RandomK>(ratio));
}

}  // namespace nexar
