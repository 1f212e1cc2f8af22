// out = op(source 0, source 1, ...) for every type, op and instruction set, against the oracle.
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "reduce/oracle.h"
#include "reduce/reducer.h"
#include "reduce/targets.h"

namespace nexar::reduce {
namespace {

using test::Element64;

struct Case {
  DataType type;
  ReduceOp op;
  std::size_t sources;
  std::size_t count;
  std::size_t offset;  // of the result, in bytes
  std::uint64_t divisor;
  Store store;
  bool in_place;  // the result replaces the last source
};

void check(const test::Target& target, const Case& c, std::mt19937_64& random) {
  const std::size_t bytes = c.count * size_of(c.type);
  std::vector<std::vector<Element64>> elements(c.sources, std::vector<Element64>(c.count));
  std::vector<std::vector<std::uint8_t>> buffers;
  std::vector<const void*> sources;
  for (std::vector<Element64>& row : elements) {
    buffers.emplace_back(bytes);
    for (std::size_t i = 0; i < c.count; ++i)
      test::store_element(c.type, buffers.back().data(), i, row[i] = test::random_element(c.type, random));
  }
  for (const auto& buffer : buffers) sources.push_back(buffer.data());
  std::vector<std::uint8_t> result(bytes + c.offset);
  std::uint8_t* out = c.in_place ? buffers.back().data() : result.data() + c.offset;

  const Reducer reducer = Reducer::make(c.type, c.op, target.table).value();
  ASSERT_TRUE(reducer.combine_many(sources, out, c.count, c.divisor, c.store));

  for (std::size_t i = 0; i < c.count; ++i) {
    std::vector<Element64> inputs;
    for (const auto& row : elements) inputs.push_back(row[i]);
    const Element64 expected = test::reduce_elements(c.type, c.op, inputs, c.divisor);
    const Element64 actual = test::load_element(c.type, out, i);
    ASSERT_TRUE(test::same_element(c.type, actual, expected))
        << target.name << " " << to_string(c.type) << " " << to_string(c.op) << " of " << c.sources << " at " << i << " of " << c.count
        << std::hex << ": 0x" << actual << ", not 0x" << expected;
  }
}

class ManyTest : public testing::TestWithParam<DataType> {};

TEST_P(ManyTest, EveryTargetAccumulatesFromTheLeftAndRoundsOnce) {
  std::mt19937_64 random(2);
  for (const test::Target& target : test::all_targets())
    for (const ReduceOp op : test::ops_of(GetParam()))
      for (std::size_t sources = 1; sources <= 9; ++sources)
        for (const std::size_t count : {0, 1, 7, 64, 131})
          for (const bool in_place : {false, true})
            ASSERT_NO_FATAL_FAILURE(check(target, {GetParam(), op, sources, count, 0, sources, Store::kCached, in_place}, random));
}

TEST_P(ManyTest, StreamingStoresGiveTheSameAtAnyAlignment) {
  std::mt19937_64 random(3);
  for (const test::Target& target : test::all_targets())
    for (const std::size_t count : {1, 63, 200, 1021})
      for (std::size_t offset = 0; offset < 64; offset += 3)
        ASSERT_NO_FATAL_FAILURE(check(target, {GetParam(), ReduceOp::kSum, 3, count, offset, 1, Store::kStreaming, false}, random));
}

INSTANTIATE_TEST_SUITE_P(Types, ManyTest, testing::ValuesIn(kDataTypes), test::type_name);

TEST(Average, DividesTheSumOnceAtTheEnd) {
  std::mt19937_64 random(4);
  for (const test::Target& target : test::all_targets())
    for (const DataType type : std::span(kDataTypes).first(kDataTypes.size() - 1))  // all but bool
      for (const std::uint64_t divisor : {1, 2, 3, 7, 255, 256, 1000, 65537, 2147483647})
        ASSERT_NO_FATAL_FAILURE(check(target, {type, ReduceOp::kAvg, 3, 777, 0, divisor, Store::kCached, false}, random));
}

TEST(Average, OfIntegersTruncatesTowardsZero) {
  const Reducer average = Reducer::make(DataType::kI32, ReduceOp::kAvg).value();
  std::vector<std::int32_t> sum = {7, -7, 8, -8, 2, -2, INT32_MIN, INT32_MAX};
  ASSERT_TRUE(average.finish(sum.data(), sum.size(), 3));
  EXPECT_EQ(sum, (std::vector<std::int32_t>{2, -2, 2, -2, 0, 0, INT32_MIN / 3, INT32_MAX / 3}));
}

TEST(Average, IsFinishedOnceAfterSumsOfPairs) {
  const Reducer average = Reducer::make(DataType::kF32, ReduceOp::kAvg).value();
  std::vector<float> sum = {1, 2, 3};
  const std::vector<float> more = {2, 4, 7};
  ASSERT_TRUE(average.combine(sum.data(), more.data(), sum.data(), sum.size()));
  EXPECT_EQ(sum, (std::vector<float>{3, 6, 10}));
  ASSERT_TRUE(average.finish(sum.data(), sum.size(), 2));
  EXPECT_EQ(sum, (std::vector<float>{1.5, 3, 5}));
}

TEST(Average, IsTheOnlyOpThatFinishChanges) {
  std::vector<float> values = {1, 2, 3};
  ASSERT_TRUE(Reducer::make(DataType::kF32, ReduceOp::kSum).value().finish(values.data(), values.size(), 2));
  EXPECT_EQ(values, (std::vector<float>{1, 2, 3}));
}

// 256 + 1 is not representable in bf16 and rounds to 256; eight times in a row nothing is ever added. In f32 the eight ones survive.
TEST(Many, SmallFloatsKeepWhatRoundingEachStepWouldLose) {
  const std::vector<bf16> large = {bf16(256.0f)};
  const std::vector<bf16> one = {bf16(1.0f)};
  const std::vector<const void*> sources = {large.data(), one.data(), one.data(), one.data(), one.data()};
  std::vector<bf16> result(1);
  const Reducer sum = Reducer::make(DataType::kBf16, ReduceOp::kSum).value();
  ASSERT_TRUE(sum.combine_many(sources, result.data(), 1));
  EXPECT_EQ(static_cast<float>(result[0]), 260.0f);
}

}  // namespace
}  // namespace nexar::reduce
