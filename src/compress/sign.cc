// The sign of each element times the block's mean magnitude.
#include <algorithm>
#include <array>

#include "compress/blocks.h"

namespace nexar::compress {
namespace {

struct SignCodec {
  static constexpr std::string_view kName = "sign";
  // A scale costs 4 bytes: beside the 128 bytes of a block's signs that is 3 %.
  static constexpr std::size_t kBlock = 1024;

  static constexpr std::uint64_t code_bytes(std::uint64_t n) { return n / 8 + (n % 8 != 0 ? 1 : 0); }

  // A block with a NaN or an infinity has this scale, and decodes to NaN.
  template <typename N>
  static constexpr BitsOf<N> kNotFinite = std::bit_cast<BitsOf<N>>(std::numeric_limits<N>::quiet_NaN());

  // In f64, whatever the type. A magnitude is divided by 2^10, the block's length, before it is added, so that no sum overflows. Eight sums
  // run side by side, element i in sum i mod 8, and are added up from the first.
  template <typename N>
  static N scale(const N* numbers, std::size_t n) {
    std::array<double, 8> sums{};
    bool finite = true;
    for (std::size_t i = 0; i < n; ++i) {
      finite = finite && is_finite_number(numbers[i]);
      sums[i % sums.size()] += static_cast<double>(std::bit_cast<N>(magnitude_bits(numbers[i]))) * 0x1p-10;
    }
    if (!finite) return std::bit_cast<N>(kNotFinite<N>);
    double sum = 0;
    for (const double part : sums) sum += part;
    const double mean = sum * (static_cast<double>(kBlock) / static_cast<double>(n));
    return static_cast<N>(std::min(mean, static_cast<double>(std::numeric_limits<N>::max())));
  }

  // Eight at a time, one byte of signs; the last byte may hold fewer.
  template <typename N>
  static void encode(const N* numbers, std::size_t n, N, std::byte* codes) {
    for (std::size_t i = 0; i < n; i += 8) {
      unsigned signs = 0;
      const std::size_t here = std::min<std::size_t>(n - i, 8);
      for (std::size_t j = 0; j < here; ++j) signs |= (std::bit_cast<BitsOf<N>>(numbers[i + j]) < 0 ? 1u : 0u) << j;
      codes[i / 8] = static_cast<std::byte>(signs);
    }
  }

  template <typename N>
  static void decode(const std::byte* codes, std::size_t n, N scale, N* numbers) {
    const N values[2] = {scale, -scale};
    std::size_t i = 0;
    for (; n - i >= 8; i += 8) {
      const auto signs = std::to_integer<unsigned>(codes[i / 8]);
      for (unsigned j = 0; j < 8; ++j) numbers[i + j] = values[(signs >> j) & 1];
    }
    for (; i < n; ++i) numbers[i] = values[(std::to_integer<unsigned>(codes[i / 8]) >> (i % 8)) & 1];
  }

  template <typename N>
  static bool valid_scale(N scale) {
    return is_plain_scale(scale) || std::bit_cast<BitsOf<N>>(scale) == kNotFinite<N>;
  }

  static std::optional<std::string> find_bad(const std::byte* codes, std::uint64_t n) {
    if (n % 8 == 0 || (std::to_integer<unsigned>(codes[n / 8]) >> (n % 8)) == 0) return std::nullopt;
    return fmt::format("of {} elements has signs after the last", n);
  }
};

}  // namespace
}  // namespace nexar::compress

namespace nexar {

std::shared_ptr<const Compressor> Compressor::sign() { return std::make_shared<compress::BlockCompressor<compress::SignCodec>>(); }

}  // namespace nexar
