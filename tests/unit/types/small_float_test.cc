#include "nexar/small_float.h"

#include <bit>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "numbers/exact_values.h"

namespace nexar {
namespace {

using test::ExactFormat;

template <typename T>
class SmallFloatTest : public testing::Test {};
using SmallFloats = testing::Types<f16, bf16, f8e4m3, f8e5m2>;
TYPED_TEST_SUITE(SmallFloatTest, SmallFloats);

TYPED_TEST(SmallFloatTest, EveryCodeHasItsValue) {
  const ExactFormat& exact = ExactFormat::of(data_type_of<TypeParam>);
  for (std::uint32_t code = 0; code < exact.codes(); ++code) {
    const auto value = static_cast<float>(TypeParam::from_bits(static_cast<typename TypeParam::Bits>(code)));
    if (exact.is_nan(code)) {
      EXPECT_TRUE(std::isnan(value)) << code;
    } else {
      EXPECT_EQ(value, exact.value(code)) << code;
      EXPECT_EQ(std::signbit(value), std::signbit(exact.value(code))) << code;
    }
  }
}

template <typename T>
void expect_nearest(float x) {
  const ExactFormat& exact = ExactFormat::of(data_type_of<T>);
  const std::uint32_t code = T(x).bits;
  if (std::isnan(x))
    ASSERT_TRUE(exact.is_nan(code));
  else
    ASSERT_EQ(code, exact.nearest(x)) << x << " = 0x" << std::hex << std::bit_cast<std::uint32_t>(x);
}

TYPED_TEST(SmallFloatTest, FloatsRoundToTheNearestAndTiesToEven) {
  for (const float x : ExactFormat::of(data_type_of<TypeParam>).critical_floats()) expect_nearest<TypeParam>(x);
}

TYPED_TEST(SmallFloatTest, AnyFloatRoundsToTheNearest) {
  std::mt19937 random(7);
  for (int i = 0; i < 200'000; ++i) expect_nearest<TypeParam>(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
}

TEST(SmallFloat, TheFiniteFormatSaturatesAndTheOthersOverflow) {
  EXPECT_EQ(static_cast<float>(f8e4m3(1e9f)), 448.0f);
  EXPECT_EQ(static_cast<float>(f8e4m3(-INFINITY)), -448.0f);
  EXPECT_EQ(static_cast<float>(f8e5m2(1e9f)), INFINITY);
  EXPECT_EQ(static_cast<float>(f16(65520.0f)), INFINITY);
  EXPECT_EQ(static_cast<float>(f16(65519.0f)), 65504.0f);
}

static_assert(static_cast<float>(bf16(1.0f)) == 1.0f, "conversions work at compile time");

}  // namespace
}  // namespace nexar
