#include "compress/model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "numbers/exact_values.h"

namespace nexar::test {
namespace {

// Calls f with a zero of the type that elements of `type` are computed with.
template <typename F>
auto in_numbers(DataType type, F&& f) {
  return type == DataType::kF64 ? f(double{}) : f(float{});
}

// The model of a quantiser: block by block, f(numbers of the block, where their values go).
template <typename N, typename F>
std::vector<double> by_blocks(DataType type, const Elements& elements, std::size_t block, F&& f) {
  std::vector<double> values(elements.size());
  for (std::size_t first = 0; first < elements.size(); first += block) {
    std::vector<N> numbers;
    for (std::size_t i = first; i < std::min(first + block, elements.size()); ++i)
      numbers.push_back(static_cast<N>(number(type, elements[i])));
    f(numbers, values.data() + first);
  }
  return values;
}

template <typename N>
N scale_model(const std::vector<N>& numbers, N top) {
  N largest = 0;
  for (const N x : numbers)
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  N scale = largest / top;
  if (std::isinf(scale * top)) scale = std::nextafter(scale, N{0});
  return scale;
}

}  // namespace

std::vector<std::byte> to_bytes(DataType type, const Elements& elements) {
  std::vector<std::byte> bytes(elements.size() * size_of(type));
  for (std::size_t i = 0; i < elements.size(); ++i) store_element(type, reinterpret_cast<std::uint8_t*>(bytes.data()), i, elements[i]);
  return bytes;
}

Elements to_elements(DataType type, std::span<const std::byte> bytes) {
  Elements elements(bytes.size() / size_of(type));
  for (std::size_t i = 0; i < elements.size(); ++i)
    elements[i] = load_element(type, reinterpret_cast<const std::uint8_t*>(bytes.data()), i);
  return elements;
}

double number(DataType type, Element64 element) {
  if (type == DataType::kF64) return std::bit_cast<double>(element);
  if (type == DataType::kF32) return std::bit_cast<float>(static_cast<std::uint32_t>(element));
  return ExactFormat::of(type).value(static_cast<std::uint32_t>(element));
}

Element64 element(DataType type, double number) {
  if (type == DataType::kF64) return std::bit_cast<std::uint64_t>(number);
  if (type == DataType::kF32) return std::bit_cast<std::uint32_t>(static_cast<float>(number));
  return ExactFormat::of(type).nearest(static_cast<float>(number));
}

std::uint64_t magnitude(DataType type, Element64 bits) {
  if (std::isnan(number(type, bits))) return ~std::uint64_t{0};
  return bits & ((std::uint64_t{1} << (8 * size_of(type) - 1)) - 1);
}

std::vector<std::uint32_t> largest(DataType type, const Elements& elements, std::size_t k) {
  std::vector<std::uint32_t> order(elements.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return magnitude(type, elements[a]) > magnitude(type, elements[b]); });
  order.resize(k);
  std::sort(order.begin(), order.end());
  return order;
}

std::vector<double> top_k_model(DataType type, const Elements& elements, double ratio) {
  std::vector<double> values(elements.size());
  if (elements.empty()) return values;
  const auto count = static_cast<double>(elements.size());
  const auto k = static_cast<std::size_t>(std::clamp(std::ceil(count * ratio), 1.0, count));
  for (const std::uint32_t i : largest(type, elements, k)) values[i] = number(type, elements[i]);
  return values;
}

std::vector<double> int8_model(DataType type, const Elements& elements) {
  return in_numbers(type, [&]<typename N>(N) {
    return by_blocks<N>(type, elements, 256, [](const std::vector<N>& numbers, double* values) {
      const N scale = scale_model(numbers, N{127});
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const N code = scale == 0 ? N{0} : std::clamp(std::nearbyint(numbers[i] / scale), N{-127}, N{127});
        values[i] = std::isfinite(numbers[i]) ? code * scale : std::numeric_limits<double>::quiet_NaN();
      }
    });
  });
}

std::vector<double> fp8_model(DataType type, const Elements& elements) {
  const ExactFormat& format = ExactFormat::of(DataType::kF8e4m3);
  return in_numbers(type, [&]<typename N>(N) {
    return by_blocks<N>(type, elements, 256, [&](const std::vector<N>& numbers, double* values) {
      const N scale = scale_model(numbers, N{448});
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const float scaled = scale == 0 ? 0.0f : static_cast<float>(std::clamp(numbers[i] / scale, N{-448}, N{448}));
        const N nearest = std::isfinite(numbers[i]) ? static_cast<N>(format.value(format.nearest(scaled))) : N{0};
        values[i] = std::isfinite(numbers[i]) ? nearest * scale : std::numeric_limits<double>::quiet_NaN();
      }
    });
  });
}

std::vector<double> sign_model(DataType type, const Elements& elements) {
  return in_numbers(type, [&]<typename N>(N) {
    return by_blocks<N>(type, elements, 1024, [](const std::vector<N>& numbers, double* values) {
      double sums[8] = {};
      for (std::size_t i = 0; i < numbers.size(); ++i) sums[i % 8] += std::abs(static_cast<double>(numbers[i])) / 1024;
      const double sum = sums[0] + sums[1] + sums[2] + sums[3] + sums[4] + sums[5] + sums[6] + sums[7];
      const double mean = sum * (1024.0 / static_cast<double>(numbers.size()));
      const bool finite = std::all_of(numbers.begin(), numbers.end(), [](N x) { return std::isfinite(x); });
      const N scale = finite ? static_cast<N>(std::min<double>(mean, std::numeric_limits<N>::max())) : std::numeric_limits<N>::quiet_NaN();
      for (std::size_t i = 0; i < numbers.size(); ++i) values[i] = std::signbit(numbers[i]) ? -scale : scale;
    });
  });
}

Element64 subtract_model(DataType type, Element64 residual, double value) {
  const double rest = in_numbers(type, [&]<typename N>(N) {
    return static_cast<double>(static_cast<N>(static_cast<N>(number(type, residual)) - static_cast<N>(value)));
  });
  return std::isnan(rest) && value != 0 ? 0 : element(type, rest);
}

Elements random_elements(DataType type, std::size_t count, std::mt19937_64& random) {
  Elements elements(count);
  for (Element64& e : elements) e = random_element(type, random);
  return elements;
}

Elements gradient_elements(DataType type, std::size_t count, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  Elements elements(count);
  for (Element64& e : elements) e = element(type, 1e-2 * normal(random));
  return elements;
}

testing::AssertionResult same_elements(DataType type, const Elements& got, const Elements& wanted) {
  if (got.size() != wanted.size()) return testing::AssertionFailure() << got.size() << " elements instead of " << wanted.size();
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!same_element(type, got[i], wanted[i]))
      return testing::AssertionFailure() << "element " << i << " is " << number(type, got[i]) << " instead of " << number(type, wanted[i]);
  return testing::AssertionSuccess();
}

std::vector<std::byte> compressed(const Compressor& compressor, DataType type, const Elements& elements,
                                  const CompressionContext& context) {
  std::vector<std::byte> out(compressor.bytes_max(elements.size(), type));
  out.resize(compressor.compress(to_bytes(type, elements), type, context, out).value());
  return out;
}

Result<Elements> decompressed(const Compressor& compressor, DataType type, std::span<const std::byte> bytes, std::size_t count,
                              const CompressionContext& context) {
  std::vector<std::byte> tensor(count * size_of(type), std::byte{0x55});
  if (auto done = compressor.decompress(bytes, type, context, tensor); !done) return done.error();
  return to_elements(type, tensor);
}

std::vector<std::shared_ptr<const Compressor>> all_compressors() {
  std::vector<std::shared_ptr<const Compressor>> all = {Compressor::none(), Compressor::int8(), Compressor::fp8(), Compressor::sign()};
  for (const double ratio : {1e-9, 0.01, 0.3, 0.8, 1.0}) {
    all.push_back(Compressor::top_k(ratio).value());
    all.push_back(Compressor::random_k(ratio).value());
  }
  return all;
}

}  // namespace nexar::test
