#include "numbers/exact_values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace nexar::test {

ExactFormat::ExactFormat(int exponent_bits, int fraction_bits, bool has_infinity)
    : bits_(1 + exponent_bits + fraction_bits), has_infinity_(has_infinity), values_(codes()) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const std::uint32_t half = codes() / 2;
  const int top = (1 << exponent_bits) - 1;
  const int fractions = 1 << fraction_bits;
  for (std::uint32_t code = 0; code < half; ++code) {
    const int exponent = static_cast<int>(code) / fractions;
    const int fraction = static_cast<int>(code) % fractions;
    double value =
        exponent == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits) : std::ldexp(fractions + fraction, exponent - bias - fraction_bits);
    if (has_infinity && exponent == top) value = fraction == 0 ? INFINITY : NAN;
    if (!has_infinity && exponent == top && fraction == fractions - 1) value = NAN;
    values_[code] = value;
    values_[code + half] = -value;
    if (std::isfinite(value)) largest_ = code;
  }
  const double last_gap = values_[largest_] - values_[largest_ - 1];
  too_large_ = values_[largest_] + last_gap / 2;
}

const ExactFormat& ExactFormat::of(DataType type) {
  static const std::map<DataType, ExactFormat> kFormats = {{DataType::kF16, ExactFormat(5, 10, true)},
                                                           {DataType::kBf16, ExactFormat(8, 7, true)},
                                                           {DataType::kF8e4m3, ExactFormat(4, 3, false)},
                                                           {DataType::kF8e5m2, ExactFormat(5, 2, true)}};
  return kFormats.at(type);
}

bool ExactFormat::is_nan(std::uint32_t code) const { return std::isnan(values_[code]); }

std::uint32_t ExactFormat::nearest(float x) const {
  const std::uint32_t half = codes() / 2;
  if (std::isnan(x)) return half - 1;  // all ones: a NaN in each format
  const double magnitude = std::fabs(static_cast<double>(x));
  const std::uint32_t sign = std::signbit(x) ? half : 0;
  if (magnitude >= too_large_) return sign + (has_infinity_ ? largest_ + 1 : largest_);

  const auto end = values_.begin() + largest_ + 1;
  const auto above = std::upper_bound(values_.begin(), end, magnitude);
  const auto below = static_cast<std::uint32_t>(above - values_.begin()) - 1;
  if (above == end) return sign + below;
  const double middle = (values_[below] + *above) / 2;  // exact: both have few bits
  if (magnitude < middle) return sign + below;
  if (magnitude > middle) return sign + below + 1;
  return sign + below + below % 2;
}

std::vector<float> ExactFormat::critical_floats() const {
  std::vector<float> floats = {INFINITY,
                               -INFINITY,
                               NAN,
                               std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::lowest(),
                               std::numeric_limits<float>::denorm_min()};
  const auto add = [&](double exact) {
    const auto x = static_cast<float>(exact);
    if (static_cast<double>(x) != exact) return;  // past the range of f32
    for (const float near : {x, std::nextafter(x, INFINITY), std::nextafter(x, -INFINITY)}) {
      floats.push_back(near);
      floats.push_back(-near);
    }
  };
  for (std::uint32_t code = 0; code <= largest_; ++code) {
    add(values_[code]);
    if (code < largest_) add((values_[code] + values_[code + 1]) / 2);
  }
  add(too_large_);
  return floats;
}

}  // namespace nexar::test
