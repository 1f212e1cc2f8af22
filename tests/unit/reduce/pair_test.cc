// out = op(left, right) for every type, op and instruction set, against the oracle.
#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "reduce/oracle.h"
#include "reduce/reducer.h"
#include "reduce/targets.h"

namespace nexar::reduce {
namespace {

using test::Element64;

// A heap block of exactly `bytes` bytes, so that AddressSanitizer sees a step past either end.
class ExactBuffer {
 public:
  explicit ExactBuffer(std::size_t bytes) : size_(bytes), bytes_(new std::uint8_t[bytes]) {}
  std::uint8_t* data() { return bytes_.get(); }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_;
  std::unique_ptr<std::uint8_t[]> bytes_;
};

std::vector<Element64> random_elements(DataType type, std::size_t count, std::mt19937_64& random) {
  std::vector<Element64> elements(count);
  for (Element64& element : elements) element = test::random_element(type, random);
  return elements;
}

void fill(DataType type, std::uint8_t* buffer, const std::vector<Element64>& elements) {
  for (std::size_t i = 0; i < elements.size(); ++i) test::store_element(type, buffer, i, elements[i]);
}

enum class Alias { kNone, kLeft, kRight };

// Buffers start `offset` bytes into their blocks, all differently aligned.
void check(const test::Target& target, DataType type, ReduceOp op, std::size_t count, std::size_t offset, Alias alias,
           std::mt19937_64& random) {
  const std::string what = target.name + " " + std::string(to_string(type)) + " " + std::string(to_string(op)) + " count " +
                           std::to_string(count) + " offset " + std::to_string(offset);
  const std::vector<Element64> lefts = random_elements(type, count, random);
  const std::vector<Element64> rights = random_elements(type, count, random);
  const std::size_t bytes = count * size_of(type);
  ExactBuffer left(bytes + offset);
  ExactBuffer right(bytes + 2 * offset);
  ExactBuffer other(bytes + 3 * offset);
  fill(type, left.data() + offset, lefts);
  fill(type, right.data() + 2 * offset, rights);
  std::uint8_t* out = alias == Alias::kLeft    ? left.data() + offset
                      : alias == Alias::kRight ? right.data() + 2 * offset
                                               : other.data() + 3 * offset;

  const Reducer reducer = Reducer::make(type, op, target.table).value();
  ASSERT_TRUE(reducer.combine(left.data() + offset, right.data() + 2 * offset, out, count));

  for (std::size_t i = 0; i < count; ++i) {
    const Element64 inputs[] = {lefts[i], rights[i]};
    const Element64 expected = test::reduce_elements(type, op, inputs, 1);
    const Element64 actual = test::load_element(type, out, i);
    ASSERT_TRUE(test::same_element(type, actual, expected))
        << what << " at " << i << std::hex << ": 0x" << lefts[i] << ", 0x" << rights[i] << " gave 0x" << actual << ", not 0x" << expected;
  }
}

class PairTest : public testing::TestWithParam<DataType> {};

TEST_P(PairTest, EveryTargetGivesTheBitsOfTheOracleAtAnyLengthAndAlignment) {
  std::mt19937_64 random(1);
  for (const test::Target& target : test::all_targets()) {
    for (const ReduceOp op : test::ops_of(GetParam())) {
      for (const std::size_t count : {0, 1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 255, 257, 1021})
        for (const Alias alias : {Alias::kNone, Alias::kLeft, Alias::kRight})
          for (const std::size_t offset : {0, 1, 4}) ASSERT_NO_FATAL_FAILURE(check(target, GetParam(), op, count, offset, alias, random));
    }
  }
}

// avg adds in combine(); the oracle's avg with divisor 1 is that sum.
INSTANTIATE_TEST_SUITE_P(Types, PairTest, testing::ValuesIn(kDataTypes), test::type_name);

TEST(Pair, NothingBesideTheResultIsWritten) {
  for (const test::Target& target : test::all_targets()) {
    for (std::size_t count = 0; count < 70; ++count) {
      std::vector<std::uint8_t> left(count, 1);
      std::vector<std::uint8_t> right(count, 2);
      std::vector<std::uint8_t> out(count + 256, 0xA5);
      ASSERT_TRUE(
          Reducer::make(DataType::kU8, ReduceOp::kSum, target.table).value().combine(left.data(), right.data(), out.data() + 128, count));
      std::vector<std::uint8_t> expected(count + 256, 0xA5);
      std::fill_n(expected.begin() + 128, count, std::uint8_t{3});
      ASSERT_EQ(out, expected) << target.name << " " << count;
    }
  }
}

TEST(Pair, ScalarAndAtLeastOneVectorTargetAreCompared) { EXPECT_GE(test::all_targets().size(), 2u); }

TEST(Reducer, RefusesWhatHasNoMeaningByName) {
  const Result<Reducer> reducer = Reducer::make(DataType::kBf16, ReduceOp::kXor);
  ASSERT_FALSE(reducer);
  EXPECT_EQ(reducer.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(reducer.error().sentence().find("xor is bitwise and has no meaning on bf16"), std::string::npos);
}

}  // namespace
}  // namespace nexar::reduce
