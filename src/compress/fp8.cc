// Numbers of f8e4m3 times the block's scale.
#include <algorithm>

#include "compress/blocks.h"
#include "reduce/widen.h"

namespace nexar::compress {
namespace {

struct Fp8Codec {
  static constexpr std::string_view kName = "fp8";
  static constexpr std::size_t kBlock = 256;   // as in int8
  static constexpr int kTop = 448;             // the format's largest number
  static constexpr std::byte kOtherNan{0xFF};  // 0x7F is the one that is written

  static constexpr std::uint64_t code_bytes(std::uint64_t n) { return n; }

  template <typename N>
  static N scale(const N* numbers, std::size_t n) {
    return scale_for(largest_finite(numbers, n), N{kTop});
  }

  // x / scale, for f64 rounded to f32 first, then to nearest even.
  template <typename N>
  static void encode(const N* numbers, std::size_t n, N scale, std::byte* codes) {
    const bool zero = scale == 0;
    const N divisor = zero ? N{1} : scale;
    float scaled[kBlock];
    for (std::size_t i = 0; i < n; ++i) {
      const float quotient = static_cast<float>(std::clamp(numbers[i] / divisor, N{-kTop}, N{kTop}));
      scaled[i] = !is_finite_number(numbers[i]) ? std::numeric_limits<float>::quiet_NaN() : zero ? 0.0f : quotient;
    }
    reduce::narrow(DataType::kF8e4m3, scaled, codes, n);
  }

  template <typename N>
  static void decode(const std::byte* codes, std::size_t n, N scale, N* numbers) {
    float scaled[kBlock];
    reduce::widen(DataType::kF8e4m3, codes, scaled, n);
    for (std::size_t i = 0; i < n; ++i) numbers[i] = static_cast<N>(scaled[i]) * scale;
  }

  template <typename N>
  static bool valid_scale(N scale) {
    return is_plain_scale(scale);
  }

  static std::optional<std::string> find_bad(const std::byte* codes, std::uint64_t n) {
    const std::byte* bad = std::find(codes, codes + n, kOtherNan);
    if (bad == codes + n) return std::nullopt;
    return fmt::format("has a NaN with a sign at element {}", bad - codes);
  }
};

}  // namespace
}  // namespace nexar::compress

namespace nexar {

std::shared_ptr<const Compressor> Compressor::fp8() { return std::make_shared<compress::BlockCompressor<compress::Fp8Codec>>(); }

}  // namespace nexar
