#include "reduce/widen.h"

#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "numbers/exact_values.h"
#include "reduce/oracle.h"
#include "reduce/targets.h"

namespace nexar::reduce {
namespace {

using test::ExactFormat;

class WidenTest : public testing::TestWithParam<DataType> {};

TEST_P(WidenTest, EveryPatternHasItsValueOnEveryTarget) {
  const ExactFormat& exact = ExactFormat::of(GetParam());
  std::vector<std::uint8_t> codes(exact.codes() * size_of(GetParam()));
  for (std::uint32_t code = 0; code < exact.codes(); ++code) test::store_element(GetParam(), codes.data(), code, code);
  for (const test::Target& target : test::all_targets()) {
    std::vector<float> values(exact.codes());
    widen(GetParam(), codes.data(), values.data(), values.size(), target.table);
    for (std::uint32_t code = 0; code < exact.codes(); ++code) {
      if (exact.is_nan(code)) {
        ASSERT_TRUE(std::isnan(values[code])) << target.name << " " << code;
      } else {
        ASSERT_EQ(values[code], exact.value(code)) << target.name << " " << code;
        ASSERT_EQ(std::signbit(values[code]), std::signbit(exact.value(code))) << target.name << " " << code;
      }
    }
  }
}

TEST_P(WidenTest, FloatsRoundToTheNearestOnEveryTarget) {
  const ExactFormat& exact = ExactFormat::of(GetParam());
  std::vector<float> values = exact.critical_floats();
  std::mt19937 random(6);
  for (int i = 0; i < 100'000; ++i) values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  for (const test::Target& target : test::all_targets()) {
    std::vector<std::uint8_t> codes(values.size() * size_of(GetParam()));
    narrow(GetParam(), values.data(), codes.data(), values.size(), target.table);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto code = static_cast<std::uint32_t>(test::load_element(GetParam(), codes.data(), i));
      if (std::isnan(values[i]))
        ASSERT_TRUE(exact.is_nan(code)) << target.name;
      else
        ASSERT_EQ(code, exact.nearest(values[i])) << target.name << " " << values[i];
    }
  }
}

TEST_P(WidenTest, AnyLengthStaysInsideTheBuffers) {
  const std::size_t size = size_of(GetParam());
  for (const test::Target& target : test::all_targets()) {
    for (std::size_t count = 0; count < 40; ++count) {
      const std::vector<float> ones(count, 1.0f);
      std::vector<std::uint8_t> codes(count * size);
      narrow(GetParam(), ones.data(), codes.data(), count, target.table);
      std::vector<float> back(count);
      widen(GetParam(), codes.data(), back.data(), count, target.table);
      ASSERT_EQ(back, ones) << target.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, WidenTest, testing::Values(DataType::kF16, DataType::kBf16, DataType::kF8e4m3, DataType::kF8e5m2),
                         test::type_name);

}  // namespace
}  // namespace nexar::reduce
