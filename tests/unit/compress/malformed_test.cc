// What a decoder refuses, and that it adds nothing before it does.
#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "compress/model.h"
#include "compress/top_k.h"

namespace nexar::compress {
namespace {

using test::Elements;
using Bytes = std::vector<std::byte>;

Elements some(DataType type, std::size_t count) {
  std::mt19937_64 random(11);
  return test::gradient_elements(type, count, random);
}

// add() and subtract() refuse alike and leave everything as it was.
std::string refusal(const Compressor& compressor, DataType type, const Bytes& bytes, std::size_t count) {
  Bytes residual(count * size_of(type), std::byte{0x11});
  const Bytes before = residual;
  const auto subtracted = compressor.subtract(bytes, type, {}, residual);
  std::vector<float> narrow(count, 5.0f);
  std::vector<double> wide(count, 5.0);
  const auto added =
      type == DataType::kF64 ? compressor.add(bytes, type, {}, std::span(wide)) : compressor.add(bytes, type, {}, std::span(narrow));
  EXPECT_EQ(added.has_value(), subtracted.has_value());
  if (added) return "taken";
  EXPECT_EQ(added.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(added.error().sentence(), subtracted.error().sentence());
  EXPECT_EQ(residual, before);
  EXPECT_TRUE(std::all_of(narrow.begin(), narrow.end(), [](float x) { return x == 5.0f; }));
  EXPECT_TRUE(std::all_of(wide.begin(), wide.end(), [](double x) { return x == 5.0; }));
  return added.error().sentence();
}

class MalformedTest : public testing::TestWithParam<DataType> {};

TEST_P(MalformedTest, EveryOtherLengthIsRefused) {
  for (const auto& compressor : test::all_compressors()) {
    for (const std::size_t count : {0, 1, 20}) {
      const Bytes good = test::compressed(*compressor, GetParam(), some(GetParam(), count));
      ASSERT_EQ(refusal(*compressor, GetParam(), good, count), "taken") << compressor->name();
      for (std::size_t length = 0; length < good.size(); ++length)
        ASSERT_NE(refusal(*compressor, GetParam(), Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length)), count), "taken")
            << compressor->name() << " " << length;
      Bytes longer = good;
      longer.push_back({});
      ASSERT_NE(refusal(*compressor, GetParam(), longer, count), "taken") << compressor->name();
    }
  }
}

TEST_P(MalformedTest, ScalesThatAreNoneAreRefused) {
  const bool wide = GetParam() == DataType::kF64;
  const auto with_scale = [&](const Compressor& compressor, double scale) {
    Bytes bytes = test::compressed(compressor, GetParam(), some(GetParam(), 2000));
    if (wide)
      base::store_le(bytes.data() + 8, std::bit_cast<std::uint64_t>(scale));
    else
      base::store_le(bytes.data() + 4, std::bit_cast<std::uint32_t>(static_cast<float>(scale)));
    return refusal(compressor, GetParam(), bytes, 2000);
  };
  const double infinity = std::numeric_limits<double>::infinity();
  for (const auto& compressor : {Compressor::int8(), Compressor::fp8(), Compressor::sign()}) {
    const std::string name(compressor->name());
    EXPECT_EQ(with_scale(*compressor, infinity), name + " has inf as the scale of block 1");
    EXPECT_EQ(with_scale(*compressor, -infinity), name + " has -inf as the scale of block 1");
    EXPECT_EQ(with_scale(*compressor, -1.0), name + " has -1 as the scale of block 1");
    EXPECT_EQ(with_scale(*compressor, -0.0), name + " has -0 as the scale of block 1");
    EXPECT_EQ(with_scale(*compressor, 0.0), "taken");
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(with_scale(*Compressor::int8(), nan), "int8 has nan as the scale of block 1");
  EXPECT_EQ(with_scale(*Compressor::fp8(), nan), "fp8 has nan as the scale of block 1");
  EXPECT_EQ(with_scale(*Compressor::sign(), nan), "taken") << "the one that says that a block is not finite";
  EXPECT_EQ(with_scale(*Compressor::sign(), -nan), "sign has -nan as the scale of block 1");
}

TEST_P(MalformedTest, CodesThatNobodyWritesAreRefused) {
  Bytes fp8 = test::compressed(*Compressor::fp8(), GetParam(), some(GetParam(), 20));
  fp8[fp8.size() - 3] = std::byte{0x7F};
  EXPECT_EQ(refusal(*Compressor::fp8(), GetParam(), fp8, 20), "taken");
  fp8[fp8.size() - 3] = std::byte{0xFF};
  EXPECT_EQ(refusal(*Compressor::fp8(), GetParam(), fp8, 20), "fp8 has a NaN with a sign at element 17");

  Bytes sign = test::compressed(*Compressor::sign(), GetParam(), some(GetParam(), 20));
  sign.back() |= std::byte{0x10};
  EXPECT_EQ(refusal(*Compressor::sign(), GetParam(), sign, 20), "sign of 20 elements has signs after the last");
}

TEST_P(MalformedTest, IndicesAndKAreCheckedInEveryShard) {
  const TopK top_k(0.3, 10);
  const std::size_t shard_bytes = 4 + 3 * (4 + size_of(GetParam()));
  const Bytes good = test::compressed(top_k, GetParam(), some(GetParam(), 20));
  ASSERT_EQ(good.size(), 2 * shard_bytes);
  const auto with = [&](std::size_t at, std::uint32_t number) {
    Bytes bytes = good;
    base::store_le(bytes.data() + shard_bytes + at, number);
    return refusal(top_k, GetParam(), bytes, 20);
  };
  EXPECT_EQ(with(0, 2), "top_k(0.3) keeps 3 of 10 elements, but shard 1 has 2");
  EXPECT_EQ(with(0, 11), "a sparse tensor of 10 elements says that it holds 11");
  EXPECT_EQ(with(12, 10), "a sparse tensor of 10 elements has index 10 at position 2");
  EXPECT_EQ(with(8, 0), "a sparse tensor has index 0 at position 1, which is not above the one before it");
  Bytes longer = good;
  longer.push_back({});
  EXPECT_EQ(refusal(top_k, GetParam(), longer, 20), "1 bytes follow the last shard of top_k(0.3)");
}

INSTANTIATE_TEST_SUITE_P(Types, MalformedTest, testing::ValuesIn(test::kCompressible),
                         [](const auto& instance) { return std::string(to_string(instance.param)); });

TEST(Malformed, ASumOfOtherNumbersIsRefused) {
  std::vector<double> wide(2);
  std::vector<float> narrow(2);
  for (const auto& compressor : test::all_compressors()) {
    EXPECT_EQ(compressor->add({}, DataType::kF32, {}, std::span(wide)).error().sentence(), "f32 is added up in f32, and the sum is not");
    EXPECT_EQ(compressor->add({}, DataType::kF64, {}, std::span(narrow)).error().sentence(), "f64 is added up in f64, and the sum is not");
  }
}

}  // namespace
}  // namespace nexar::compress
