// The small floats exhaustively: every pattern of the 16-bit types as either operand, every pair of the 8-bit ones.
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "numbers/exact_values.h"
#include "reduce/oracle.h"
#include "reduce/reducer.h"
#include "reduce/targets.h"

namespace nexar::reduce {
namespace {

using test::Element64;

constexpr ReduceOp kFloatOps[] = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax};

template <typename Code>
void check(const test::Target& target, DataType type, ReduceOp op, const std::vector<Code>& left, const std::vector<Code>& right,
           const std::vector<Code>& expected) {
  std::vector<Code> actual(left.size());
  ASSERT_TRUE(Reducer::make(type, op, target.table).value().combine(left.data(), right.data(), actual.data(), left.size()));
  for (std::size_t i = 0; i < left.size(); ++i)
    ASSERT_TRUE(test::same_element(type, actual[i], expected[i]))
        << target.name << " " << to_string(type) << " " << to_string(op) << std::hex << " 0x" << int{left[i]} << ", 0x" << int{right[i]}
        << " gave 0x" << int{actual[i]} << ", not 0x" << int{expected[i]};
}

// All patterns against each of `others`, on both sides.
template <typename Code>
void check_all_patterns(DataType type, const std::vector<Element64>& others) {
  std::vector<Code> all(std::size_t{1} << (8 * sizeof(Code)));
  for (std::size_t code = 0; code < all.size(); ++code) all[code] = static_cast<Code>(code);
  for (const ReduceOp op : kFloatOps) {
    for (const Element64 other : others) {
      const std::vector<Code> same(all.size(), static_cast<Code>(other));
      std::vector<Code> expected(all.size());
      for (std::size_t code = 0; code < all.size(); ++code) {
        const Element64 inputs[] = {code, other};
        expected[code] = static_cast<Code>(test::reduce_elements(type, op, inputs, 1));
      }
      for (const test::Target& target : test::all_targets()) {
        ASSERT_NO_FATAL_FAILURE(check(target, type, op, all, same, expected));
        ASSERT_NO_FATAL_FAILURE(check(target, type, op, same, all, expected));
      }
    }
  }
}

std::vector<Element64> sample(DataType type) {
  std::vector<Element64> others = test::special_elements(type);
  std::mt19937_64 random(5);
  for (int i = 0; i < 8; ++i) others.push_back(random() & 0xFFFF);
  return others;
}

TEST(SmallFloatPairs, EveryF16PatternAsEitherOperand) { check_all_patterns<std::uint16_t>(DataType::kF16, sample(DataType::kF16)); }
TEST(SmallFloatPairs, EveryBf16PatternAsEitherOperand) { check_all_patterns<std::uint16_t>(DataType::kBf16, sample(DataType::kBf16)); }

std::vector<Element64> all_bytes() {
  std::vector<Element64> bytes(256);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = i;
  return bytes;
}

TEST(SmallFloatPairs, EveryF8e4m3Pair) { check_all_patterns<std::uint8_t>(DataType::kF8e4m3, all_bytes()); }
TEST(SmallFloatPairs, EveryF8e5m2Pair) { check_all_patterns<std::uint8_t>(DataType::kF8e5m2, all_bytes()); }

}  // namespace
}  // namespace nexar::reduce
