// The small float formats by their definition, for comparison: every value computed with ldexp, every rounding found by searching the table
// of values. Slow and plain on purpose; shares nothing with the code under test.
#pragma once

#include <cstdint>
#include <vector>

#include "nexar/data_type.h"

namespace nexar::test {

class ExactFormat {
 public:
  ExactFormat(int exponent_bits, int fraction_bits, bool has_infinity);

  // The format of f16, bf16, f8e4m3 or f8e5m2.
  static const ExactFormat& of(DataType type);

  std::uint32_t codes() const { return 1u << bits_; }
  double value(std::uint32_t code) const { return values_[code]; }
  bool is_nan(std::uint32_t code) const;

  // The code nearest to x, ties to the even one; a NaN's for a NaN.
  std::uint32_t nearest(float x) const;

  // The code of the largest finite value; those from 0 to it are in ascending order.
  std::uint32_t largest() const { return largest_; }

  // Floats at which rounding may go wrong: each value, each midpoint between neighbours, and their own neighbours, of both signs; infinity
  // and NaN.
  std::vector<float> critical_floats() const;

 private:
  int bits_;
  bool has_infinity_;
  std::uint32_t largest_ = 0;
  double too_large_ = 0;  // from here on a value rounds past the largest
  std::vector<double> values_;
};

}  // namespace nexar::test
