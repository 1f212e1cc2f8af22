// Contributions of several ranks, added up.
#include "compress/accumulator.h"

#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "compress/model.h"

namespace nexar::compress {
namespace {

using test::Elements;

// Each contribution as the numbers that a sum adds, found by adding it alone to zeros.
std::vector<double> values_of(const Compressor& compressor, DataType type, const std::vector<std::byte>& bytes, std::size_t count,
                              const CompressionContext& context) {
  if (type == DataType::kF64) {
    std::vector<double> sum(count);
    compressor.add(bytes, type, context, std::span(sum)).value();
    return sum;
  }
  std::vector<float> sum(count);
  compressor.add(bytes, type, context, std::span(sum)).value();
  return {sum.begin(), sum.end()};
}

// In the order of ranks, in f64 for f64 and f32 for the others, rounded once.
template <typename N>
Elements reduce(DataType type, ReduceOp op, const std::vector<std::vector<double>>& contributions) {
  Elements result;
  for (std::size_t i = 0; i < contributions[0].size(); ++i) {
    N sum = 0;
    for (const std::vector<double>& values : contributions) sum = sum + static_cast<N>(values[i]);
    if (op == ReduceOp::kAvg) sum = sum / static_cast<N>(contributions.size());
    result.push_back(test::element(type, sum));
  }
  return result;
}

class AccumulatorTest : public testing::TestWithParam<DataType> {};

TEST_P(AccumulatorTest, AddsInRankOrderAndRoundsOnce) {
  const DataType type = GetParam();
  const CompressionContext context = {.group = 1, .sequence = 5};
  std::mt19937_64 random(10);
  for (const auto& compressor : test::all_compressors()) {
    for (const std::size_t ranks : {1, 2, 3, 9}) {
      for (const std::size_t count : {0, 1, 300, 1500}) {
        for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg}) {
          std::vector<std::byte> tensor(count * size_of(type), std::byte{0x77});
          Accumulator sum = Accumulator::make(*compressor, tensor, type, op, context).value();
          std::vector<std::vector<double>> contributions;
          for (std::size_t rank = 0; rank < ranks; ++rank) {
            const Elements elements =
                ranks == 3 ? test::random_elements(type, count, random) : test::gradient_elements(type, count, random);
            const std::vector<std::byte> bytes = test::compressed(*compressor, type, elements, context);
            contributions.push_back(values_of(*compressor, type, bytes, count, context));
            sum.add(bytes).value();
          }
          sum.finish().value();
          const Elements wanted = type == DataType::kF64 ? reduce<double>(type, op, contributions) : reduce<float>(type, op, contributions);
          ASSERT_TRUE(test::same_elements(type, test::to_elements(type, tensor), wanted))
              << compressor->name() << ", " << ranks << " ranks";
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, AccumulatorTest, testing::ValuesIn(test::kCompressible),
                         [](const auto& instance) { return std::string(to_string(instance.param)); });

TEST(Accumulator, RefusesWhatIsNotReducedCompressed) {
  const auto top_k = Compressor::top_k(0.5).value();
  alignas(8) std::byte tensor[16] = {};
  const auto refusal = [&](std::span<std::byte> where, DataType type, ReduceOp op) {
    const Result<Accumulator> made = Accumulator::make(*top_k, where, type, op, {});
    return made ? "taken" : made.error().to_string();
  };
  EXPECT_EQ(refusal(tensor, DataType::kI32, ReduceOp::kSum), "invalid_argument: top_k(0.5) compresses f32, f64, f16 and bf16, not i32");
  EXPECT_EQ(refusal(tensor, DataType::kF32, ReduceOp::kMax), "invalid_argument: compressed tensors are reduced by sum or avg, not max");
  EXPECT_EQ(refusal(std::span(tensor).subspan(1, 8), DataType::kF32, ReduceOp::kSum),
            "invalid_argument: a tensor of f32 stands at an address that is no multiple of 4");
  EXPECT_EQ(refusal(std::span(tensor).first(15), DataType::kF32, ReduceOp::kSum),
            "invalid_argument: 15 bytes are no whole number of elements of f32");
}

TEST(Accumulator, SaysWhatIsWrongWithAContribution) {
  const auto int8 = Compressor::int8();
  std::vector<float> tensor(10);
  Accumulator sum = Accumulator::make(*int8, std::as_writable_bytes(std::span(tensor)), DataType::kF32, ReduceOp::kSum, {}).value();
  EXPECT_EQ(sum.add(std::vector<std::byte>(13)).error().sentence(), "int8 of 10 elements takes 14 bytes and has 13");
}

}  // namespace
}  // namespace nexar::compress
