#include "reduce/identity.h"

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "reduce/oracle.h"

namespace nexar::reduce {
namespace {

using test::Element64;

// Whatever it is combined with, from either side, stays: up to the sign of zero, which a sum with +0 loses, and any NaN being any NaN.
TEST(Identity, ChangesNothing) {
  std::mt19937_64 random(8);
  for (const DataType type : kDataTypes) {
    for (const ReduceOp op : test::ops_of(type)) {
      std::vector<std::uint8_t> buffer(3 * size_of(type));
      ASSERT_TRUE(fill_identity(type, op, buffer.data(), 3));
      const Element64 identity = test::load_element(type, buffer.data(), 2);
      for (int i = 0; i < 2000; ++i) {
        const Element64 element = test::random_element(type, random);
        const Element64 negative_zero = Element64{1} << (8 * size_of(type) - 1);
        const bool zero_loses_its_sign = is_float(type) && element == negative_zero && (op == ReduceOp::kSum || op == ReduceOp::kAvg);
        // f8e4m3 has a NaN but no infinity; nothing is beyond its extremes. bool is normalised to 0 and 1.
        const Element64 expected = zero_loses_its_sign ? 0 : type == DataType::kBool ? (element != 0) : element;
        const Element64 before[] = {identity, element};
        const Element64 after[] = {element, identity};
        ASSERT_TRUE(test::same_element(type, test::reduce_elements(type, op, before, 1), expected))
            << to_string(type) << " " << to_string(op);
        ASSERT_TRUE(test::same_element(type, test::reduce_elements(type, op, after, 1), expected))
            << to_string(type) << " " << to_string(op);
      }
    }
  }
}

TEST(Identity, OfMinAndMaxIsInfinityOrTheExtreme) {
  float f32 = 0;
  ASSERT_TRUE(fill_identity(DataType::kF32, ReduceOp::kMin, &f32, 1));
  EXPECT_EQ(f32, std::numeric_limits<float>::infinity());
  f8e4m3 finite;
  ASSERT_TRUE(fill_identity(DataType::kF8e4m3, ReduceOp::kMax, &finite, 1));
  EXPECT_EQ(static_cast<float>(finite), -448.0f);
  std::int16_t i16 = 0;
  ASSERT_TRUE(fill_identity(DataType::kI16, ReduceOp::kMin, &i16, 1));
  EXPECT_EQ(i16, INT16_MAX);
}

TEST(Identity, OfAMeaninglessCombinationIsAnError) {
  float untouched = 5;
  EXPECT_FALSE(fill_identity(DataType::kF32, ReduceOp::kAnd, &untouched, 1));
  EXPECT_EQ(untouched, 5);
}

}  // namespace
}  // namespace nexar::reduce
