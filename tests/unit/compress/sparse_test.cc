// What top-k and random-k send.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "compress/model.h"
#include "compress/positions.h"
#include "compress/random_k.h"
#include "compress/shards.h"
#include "compress/top_k.h"
#include "nexar/compressed_tensor.h"

namespace nexar::compress {
namespace {

using test::Elements;

Elements elements_of(DataType type, const std::vector<double>& numbers) {
  Elements elements;
  for (const double number : numbers) elements.push_back(test::element(type, number));
  return elements;
}

std::vector<std::uint32_t> indices_of(double ratio, DataType type, const std::vector<double>& numbers) {
  const std::vector<std::byte> bytes = test::compressed(*Compressor::top_k(ratio).value(), type, elements_of(type, numbers));
  const CompressedTensor tensor = CompressedTensor::decode(bytes, numbers.size(), type).value();
  for (std::uint32_t i = 0; i < tensor.k(); ++i) {
    const auto at = tensor.values().subspan(i * size_of(type), size_of(type));
    EXPECT_TRUE(test::same_element(type, test::to_elements(type, at)[0], test::element(type, numbers[tensor.indices()[i]])));
  }
  return {tensor.indices().begin(), tensor.indices().end()};
}

using Indices = std::vector<std::uint32_t>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class TopKTest : public testing::TestWithParam<DataType> {};

TEST_P(TopKTest, KeepsTheLargestMagnitudesByIndex) {
  EXPECT_EQ(indices_of(0.5, GetParam(), {1, -4, 2, 3, 0.5, -0.25}), (Indices{1, 2, 3}));
}

TEST_P(TopKTest, KeepsTheFirstOfEqualMagnitudes) {
  EXPECT_EQ(indices_of(0.5, GetParam(), {1, -2, 2, -2, 2, 1}), (Indices{1, 2, 3}));
  EXPECT_EQ(indices_of(0.5, GetParam(), {0, -0.0, 0, 0}), (Indices{0, 1}));
}

TEST_P(TopKTest, CountsANanAsLargerThanInfinity) {
  EXPECT_EQ(indices_of(0.25, GetParam(), {kInfinity, 1, kNan, -kInfinity}), (Indices{2}));
  EXPECT_EQ(indices_of(0.5, GetParam(), {kInfinity, 1, kNan, -kInfinity}), (Indices{0, 2}));
  EXPECT_EQ(indices_of(0.75, GetParam(), {kInfinity, 1e4, kNan, -kInfinity}), (Indices{0, 2, 3}));
}

TEST_P(TopKTest, KeepsOneAtLeastAndAllAtMost) {
  EXPECT_EQ(indices_of(1e-12, GetParam(), {1, 3, 2}), (Indices{1}));
  EXPECT_EQ(indices_of(1, GetParam(), {1, 3, 2}), (Indices{0, 1, 2}));
  EXPECT_EQ(indices_of(0.34, GetParam(), {1, 3, 2}), (Indices{1, 2}));
  EXPECT_EQ(indices_of(0.1, GetParam(), {0}), (Indices{0}));
  EXPECT_EQ(indices_of(0.1, GetParam(), {}), (Indices{}));
}

TEST_P(TopKTest, CutsALongTensorIntoShards) {
  std::mt19937_64 random(4);
  const TopK whole(0.2);
  const TopK cut(0.2, 100);
  for (const std::size_t count : {0, 1, 99, 100, 101, 200, 1234}) {
    const Elements elements = test::random_elements(GetParam(), count, random);
    const std::vector<std::byte> bytes = test::compressed(cut, GetParam(), elements);
    EXPECT_EQ(bytes.size(), cut.bytes_max(count, GetParam()));
    std::vector<std::byte> wanted;  // each shard alone, one after the other
    std::size_t first = 0;
    do {
      const std::size_t n = std::min<std::size_t>(count - first, 100);
      const std::vector<std::byte> shard = test::compressed(
          whole, GetParam(),
          {elements.begin() + static_cast<std::ptrdiff_t>(first), elements.begin() + static_cast<std::ptrdiff_t>(first + n)});
      wanted.insert(wanted.end(), shard.begin(), shard.end());
      first += n;
    } while (first < count);
    ASSERT_EQ(bytes, wanted) << count;
    Elements back(count);
    for (std::size_t i = 0; i < count; i += 100) {
      const std::size_t n = std::min<std::size_t>(count - i, 100);
      const auto begin = elements.begin() + static_cast<std::ptrdiff_t>(i);
      const std::vector<double> model = test::top_k_model(GetParam(), Elements(begin, begin + static_cast<std::ptrdiff_t>(n)), 0.2);
      for (std::size_t j = 0; j < n; ++j) back[i + j] = test::element(GetParam(), model[j] == 0 ? 0.0 : model[j]);
    }
    EXPECT_TRUE(test::same_elements(GetParam(), test::decompressed(cut, GetParam(), bytes, count).value(), back)) << count;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, TopKTest, testing::ValuesIn(test::kCompressible),
                         [](const auto& instance) { return std::string(to_string(instance.param)); });

TEST(Kept, IsTheRatioRoundedUpBetweenOneAndAll) {
  EXPECT_EQ(kept(0, 0.5), 0u);
  EXPECT_EQ(kept(1, 1e-300), 1u);
  EXPECT_EQ(kept(1000, 0.01), 10u);
  EXPECT_EQ(kept(1001, 0.01), 11u);
  EXPECT_EQ(kept(7, 1), 7u);
  EXPECT_EQ(kept(kShardElements, 1), 0xFFFFFFFFu);
  EXPECT_EQ(kept(kShardElements, 0.5), 0x80000000u);
}

TEST(Shards, OfTwoToThe32ElementsAreTwo) {
  EXPECT_EQ(TopK(1).bytes_max((std::uint64_t{1} << 32) - 1, DataType::kF32), 4 + 8 * 0xFFFFFFFFull);
  EXPECT_EQ(TopK(1).bytes_max(std::uint64_t{1} << 32, DataType::kF32), 4 + 8 * 0xFFFFFFFFull + 12);
  EXPECT_EQ(TopK(1).bytes_max(~std::uint64_t{0}, DataType::kF64), ~std::uint64_t{0}) << "more than there are numbers for";
  EXPECT_EQ(RandomK(1).bytes_max(std::uint64_t{1} << 32, DataType::kF16), std::uint64_t{1} << 33);
  EXPECT_EQ(RandomK(1).bytes_max(~std::uint64_t{0}, DataType::kF64), ~std::uint64_t{0});
}

std::vector<std::uint32_t> positions(const CompressionContext& context, std::uint32_t n, std::uint32_t k, std::uint64_t shard = 0) {
  std::vector<std::uint32_t> drawn;
  Positions::draw(context, shard, n, k).for_each([&](std::size_t i) { drawn.push_back(static_cast<std::uint32_t>(i)); });
  return drawn;
}

TEST(Positions, AreKDifferentOnesInOrder) {
  for (std::uint32_t n = 0; n < 140; ++n) {
    for (std::uint32_t k = 0; k <= n; ++k) {
      const std::vector<std::uint32_t> drawn = positions({.group = n, .sequence = k}, n, k);
      ASSERT_EQ(drawn.size(), k);
      ASSERT_EQ(std::adjacent_find(drawn.begin(), drawn.end(), std::greater_equal<>()), drawn.end());
      ASSERT_TRUE(drawn.empty() || drawn.back() < n);
    }
  }
}

// Numbers from an implementation of the description, in another language: every machine draws these.
TEST(Positions, AreTheSameOnEveryMachine) {
  EXPECT_EQ(positions({.group = 1, .sequence = 2, .seed = 3}, 1000, 5), (Indices{257, 324, 334, 523, 996}));
  EXPECT_EQ(positions({.group = 0xFFFFFFFFFFFFFFFF, .sequence = 7, .seed = 0}, 300000000, 4, 9),
            (Indices{19594706, 28567741, 37106628, 237881537}));
  EXPECT_EQ(positions({.group = 5, .sequence = 6, .seed = 7}, 12, 9), (Indices{0, 1, 2, 3, 4, 5, 7, 8, 9}));
}

TEST(Positions, FollowFromGroupSequenceSeedAndShard) {
  const CompressionContext context = {.group = 1, .sequence = 2, .seed = 3};
  const std::vector<std::uint32_t> drawn = positions(context, 1000, 50);
  EXPECT_EQ(positions(context, 1000, 50), drawn);
  EXPECT_NE(positions({.group = 2, .sequence = 2, .seed = 3}, 1000, 50), drawn);
  EXPECT_NE(positions({.group = 1, .sequence = 3, .seed = 3}, 1000, 50), drawn);
  EXPECT_NE(positions({.group = 1, .sequence = 2, .seed = 4}, 1000, 50), drawn);
  EXPECT_NE(positions(context, 1000, 50, 1), drawn);
}

// Of the sets of 2 and of 4 out of 6, 15 each, every one is as likely as any other: over 15,000 draws with known seeds each comes about
// 1000 times, and a fair generator strays further than 150, five standard deviations, less than once in a million sets.
TEST(Positions, AreAnySetWithTheSameLikelihood) {
  for (const std::uint32_t k : {2u, 4u}) {
    std::map<std::vector<std::uint32_t>, int> seen;
    for (std::uint64_t sequence = 0; sequence < 15000; ++sequence) ++seen[positions({.group = 1, .sequence = sequence}, 6, k)];
    ASSERT_EQ(seen.size(), 15u);
    for (const auto& [set, times] : seen) EXPECT_NEAR(times, 1000, 150);
  }
}

TEST(RandomK, SendsTheValuesAtThePositionsAndNothingElse) {
  const CompressionContext context = {.group = 9, .sequence = 8, .seed = 7};
  const RandomK random_k(0.3, 64);
  std::mt19937_64 random(5);
  for (const DataType type : test::kCompressible) {
    for (const std::size_t count : {0, 1, 10, 64, 65, 200}) {
      const Elements elements = test::random_elements(type, count, random);
      const std::vector<std::byte> bytes = test::compressed(random_k, type, elements, context);
      Elements wanted;
      Elements dense(count);
      for (std::size_t first = 0, shard = 0; first < count; first += 64, ++shard) {
        const std::size_t n = std::min<std::size_t>(count - first, 64);
        for (const std::uint32_t i : positions(context, static_cast<std::uint32_t>(n), kept(n, 0.3), shard)) {
          wanted.push_back(elements[first + i]);
          const double number = test::number(type, elements[first + i]);
          dense[first + i] = test::element(type, number == 0 ? 0.0 : number);  // 0 + -0 is +0
        }
      }
      EXPECT_EQ(bytes, test::to_bytes(type, wanted));
      EXPECT_EQ(bytes.size(), random_k.bytes_max(count, type));
      EXPECT_TRUE(test::same_elements(type, test::decompressed(random_k, type, bytes, count, context).value(), dense));
    }
  }
}

TEST(Ratio, OutsideItsRangeIsRefused) {
  for (const double ratio : {0.0, -0.1, 1.0000001, kInfinity, kNan}) {
    ASSERT_FALSE(Compressor::top_k(ratio)) << ratio;
    ASSERT_FALSE(Compressor::random_k(ratio)) << ratio;
  }
  EXPECT_EQ(Compressor::top_k(2).error().sentence(), "the ratio of top_k is above 0 and at most 1, not 2");
}

}  // namespace
}  // namespace nexar::compress
