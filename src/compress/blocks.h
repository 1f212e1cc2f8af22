// Quantisers: a code of few bits for each element, and a scale for each block of them.
//
//   scale of block 0, 1, ... | codes        scales are f64 for f64 and f32 for the others
//
// A Codec says how long blocks are, what the scale of one is, and how its elements become codes and numbers again:
//
//   kName, kBlock                          kBlock is a multiple of 8, so that blocks begin at whole bytes
//   code_bytes(n)                          of n elements
//   scale(numbers, n)                      finite and not negative, unless valid_scale() allows more
//   encode(numbers, n, scale, codes)
//   decode(codes, n, scale, numbers)
//   valid_scale(scale)
//   find_bad(codes, n)                     a sentence about a code that no encoder writes, or nothing
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include <fmt/format.h>

#include "base/bytes.h"
#include "compress/elements.h"
#include "compress/refusals.h"
#include "nexar/compressor.h"
#include "reduce/float_environment.h"

namespace nexar::compress {

// The bits of a number, signed: those of a number that is not negative compare as it does.
template <typename N>
using BitsOf = std::conditional_t<sizeof(N) == 8, std::int64_t, std::int32_t>;

template <typename N>
inline constexpr BitsOf<N> kLargestBits = std::bit_cast<BitsOf<N>>(std::numeric_limits<N>::max());

// Of a number without its sign.
template <typename N>
BitsOf<N> magnitude_bits(N x) {
  return std::bit_cast<BitsOf<N>>(x) & std::numeric_limits<BitsOf<N>>::max();
}

template <typename N>
bool is_finite_number(N x) {
  return magnitude_bits(x) <= kLargestBits<N>;
}

// The largest finite magnitude; compared as integers, which every compiler vectorises.
template <typename N>
N largest_finite(const N* numbers, std::size_t n) {
  BitsOf<N> largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const BitsOf<N> bits = magnitude_bits(numbers[i]);
    const BitsOf<N> finite = bits <= kLargestBits<N> ? bits : 0;
    largest = finite > largest ? finite : largest;
  }
  return std::bit_cast<N>(largest);
}

// largest / top, a little less where top times that would overflow.
template <typename N>
N scale_for(N largest, N top) {
  const N scale = largest / top;
  return is_finite_number(scale * top) ? scale : std::nextafter(scale, N{0});
}

// Finite, not negative, not -0.
template <typename N>
bool is_plain_scale(N scale) {
  const auto bits = std::bit_cast<BitsOf<N>>(scale);
  return bits >= 0 && bits <= kLargestBits<N>;
}

template <class Codec>
class BlockCompressor final : public Compressor {
 public:
  std::string_view name() const override { return Codec::kName; }
  std::uint64_t bytes_max(std::uint64_t count, DataType type) const override {
    return saturating(blocks(count), number_bytes(type), Codec::code_bytes(count));
  }
  std::uint64_t scratch_bytes(std::uint64_t, DataType) const override { return 0; }

  Result<std::size_t> compress(base::ByteView tensor, DataType type, const CompressionContext&, base::ByteSpan out) const override {
    if (auto checked = check_room(*this, tensor, type, out); !checked) return std::move(checked).error();
    const std::uint64_t count = tensor.size() / size_of(type);
    const reduce::FloatEnvironment standard;
    with_type(type, [&]<typename T>(T) {
      using N = Number<T>;
      std::byte* codes = out.data() + blocks(count) * sizeof(N);
      N numbers[Codec::kBlock];
      for_each_part(count, Codec::kBlock, [&](std::uint64_t first, std::size_t n) {
        load<T>(tensor.data() + first * sizeof(T), numbers, n);
        const N scale = Codec::template scale<N>(numbers, n);
        std::memcpy(out.data() + first / Codec::kBlock * sizeof(N), &scale, sizeof(N));
        Codec::template encode<N>(numbers, n, scale, codes + Codec::code_bytes(first));
      });
    });
    return static_cast<std::size_t>(bytes_max(count, type));
  }

  Result<void> add(base::ByteView compressed, DataType type, const CompressionContext&, SumView sum) const override {
    if (auto checked = check_sum(*this, type, sum); !checked) return checked;
    if (auto checked = check(compressed, size_of_sum(sum), type); !checked) return checked;
    const reduce::FloatEnvironment standard;
    with_type(type, [&]<typename T>(T) {
      auto* numbers = numbers_of<Number<T>>(sum).data();
      for_each_block<Number<T>>(compressed, size_of_sum(sum), [&](std::uint64_t first, const Number<T>* values, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) numbers[first + i] += values[i];
      });
    });
    return {};
  }

  Result<void> subtract(base::ByteView compressed, DataType type, const CompressionContext&, base::ByteSpan residual) const override {
    if (auto checked = check_tensor(*this, residual, type); !checked) return checked;
    const std::uint64_t count = residual.size() / size_of(type);
    if (auto checked = check(compressed, count, type); !checked) return checked;
    const reduce::FloatEnvironment standard;
    with_type(type, [&]<typename T>(T) {
      for_each_block<Number<T>>(compressed, count, [&](std::uint64_t first, const Number<T>* values, std::size_t n) {
        subtract_values<T, Codec::kBlock>(residual.data() + first * sizeof(T), values, n);
      });
    });
    return {};
  }

 private:
  static std::uint64_t blocks(std::uint64_t count) { return count / Codec::kBlock + (count % Codec::kBlock != 0 ? 1 : 0); }

  template <typename N>
  static N scale_at(base::ByteView compressed, std::uint64_t block) {
    N scale;
    std::memcpy(&scale, compressed.data() + block * sizeof(N), sizeof(N));
    return scale;
  }

  // f(first, values, n) for each block of bytes that were checked before.
  template <typename N, typename F>
  static void for_each_block(base::ByteView compressed, std::uint64_t count, F&& f) {
    const std::byte* codes = compressed.data() + blocks(count) * sizeof(N);
    N values[Codec::kBlock];
    for_each_part(count, Codec::kBlock, [&](std::uint64_t first, std::size_t n) {
      Codec::template decode<N>(codes + Codec::code_bytes(first), n, scale_at<N>(compressed, first / Codec::kBlock), values);
      f(first, values, n);
    });
  }

  Result<void> check(base::ByteView compressed, std::uint64_t count, DataType type) const {
    if (auto checked = check_length(*this, compressed, count, bytes_max(count, type)); !checked) return checked;
    return with_type(type, [&]<typename T>(T) { return check_content<Number<T>>(compressed, count); });
  }

  template <typename N>
  Result<void> check_content(base::ByteView compressed, std::uint64_t count) const {
    for (std::uint64_t block = 0; block < blocks(count); ++block)
      if (const N scale = scale_at<N>(compressed, block); !Codec::template valid_scale<N>(scale))
        return Error(ErrorCode::kInvalidArgument, fmt::format("{} has {} as the scale of block {}", name(), scale, block));
    if (const std::optional<std::string> bad = Codec::find_bad(compressed.data() + blocks(count) * sizeof(N), count))
      return Error(ErrorCode::kInvalidArgument, fmt::format("{} {}", name(), *bad));
    return {};
  }
};

}  // namespace nexar::compress
