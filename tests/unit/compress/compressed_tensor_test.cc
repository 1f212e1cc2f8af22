#include "nexar/compressed_tensor.h"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace nexar {
namespace {

std::vector<std::byte> bytes_of(const std::vector<unsigned>& numbers) {
  std::vector<std::byte> bytes;
  for (const unsigned number : numbers) bytes.push_back(static_cast<std::byte>(number));
  return bytes;
}

// Three of ten elements of f16.
const std::vector<std::byte> kGood = bytes_of({3, 0, 0, 0, /**/ 1, 0, 0, 0, 4, 0, 0, 0, 9, 0, 0, 0, /**/ 0, 0x3C, 0, 0xC0, 0xFF, 0x7F});

std::string refusal(std::vector<std::byte> bytes, std::uint64_t count = 10, DataType type = DataType::kF16) {
  const Result<CompressedTensor> tensor = CompressedTensor::decode(bytes, count, type);
  if (tensor) return "taken";
  EXPECT_EQ(tensor.error().code(), ErrorCode::kInvalidArgument);
  return tensor.error().sentence();
}

std::vector<std::byte> with(std::size_t at, unsigned byte) {
  std::vector<std::byte> bytes = kGood;
  bytes[at] = static_cast<std::byte>(byte);
  return bytes;
}

TEST(CompressedTensor, ReadsAndWritesTheWireForm) {
  const CompressedTensor tensor = CompressedTensor::decode(kGood, 10, DataType::kF16).value();
  EXPECT_EQ(tensor.k(), 3u);
  EXPECT_EQ(tensor.count(), 10u);
  EXPECT_EQ(tensor.type(), DataType::kF16);
  EXPECT_EQ(std::vector<std::uint32_t>(tensor.indices().begin(), tensor.indices().end()), (std::vector<std::uint32_t>{1, 4, 9}));
  EXPECT_EQ(static_cast<float>(tensor.value<f16>(0)), 1.0f);
  EXPECT_EQ(static_cast<float>(tensor.value<f16>(1)), -2.0f);
  EXPECT_EQ(tensor.values().size(), 6u);
  EXPECT_EQ(tensor.encode(), kGood);
  const std::vector<std::byte> values(tensor.values().begin(), tensor.values().end());
  EXPECT_EQ(CompressedTensor::make(10, DataType::kF16, {1, 4, 9}, values).value(), tensor);
}

TEST(CompressedTensor, MayBeEmpty) {
  EXPECT_EQ(CompressedTensor::decode(bytes_of({0, 0, 0, 0}), 0, DataType::kF64).value().k(), 0u);
  EXPECT_EQ(CompressedTensor::make(5, DataType::kF32, {}, {}).value().encode(), bytes_of({0, 0, 0, 0}));
}

TEST(CompressedTensor, RefusesWhatIsNoneAndSaysWhy) {
  for (std::size_t length = 0; length < kGood.size(); ++length)
    EXPECT_NE(refusal({kGood.begin(), kGood.begin() + static_cast<std::ptrdiff_t>(length)}), "taken") << length;
  EXPECT_EQ(refusal({}), "a sparse tensor of 0 bytes ends inside its k");
  EXPECT_EQ(refusal(with(0, 4)), "a sparse tensor with k = 4 has 22 bytes and needs 28");
  EXPECT_EQ(refusal(with(0, 2)), "a sparse tensor with k = 2 takes 16 bytes and has 22");
  EXPECT_EQ(refusal(with(0, 11)), "a sparse tensor of 10 elements says that it holds 11");
  EXPECT_EQ(refusal(with(3, 0xFF)), "a sparse tensor of 10 elements says that it holds 4278190083");
  EXPECT_EQ(refusal(with(8, 1)), "a sparse tensor has index 1 at position 1, which is not above the one before it");
  EXPECT_EQ(refusal(with(8, 0)), "a sparse tensor has index 0 at position 1, which is not above the one before it");
  EXPECT_EQ(refusal(with(12, 10)), "a sparse tensor of 10 elements has index 10 at position 2");
  EXPECT_EQ(refusal(with(7, 0xFF)), "a sparse tensor of 10 elements has index 4278190081 at position 0");
  EXPECT_EQ(refusal(kGood, 9), "a sparse tensor of 9 elements has index 9 at position 2");
  std::vector<std::byte> longer = kGood;
  longer.push_back({});
  EXPECT_EQ(refusal(longer), "a sparse tensor with k = 3 takes 22 bytes and has 23");
}

TEST(CompressedTensor, AllocatesNothingForAKThatTheBytesDoNotHold) {
  // With the largest count and k, indices alone would take 16 GiB.
  EXPECT_EQ(refusal(bytes_of({0xFF, 0xFF, 0xFF, 0xFF}), CompressedTensor::kCountMax, DataType::kF64),
            "a sparse tensor with k = 4294967295 has 4 bytes and needs 51539607544");
}

TEST(CompressedTensor, RefusesShapesThatItCannotHave) {
  EXPECT_EQ(refusal(kGood, 10, DataType::kI32), "a sparse tensor holds f32, f64, f16 or bf16, not i32");
  EXPECT_EQ(refusal(kGood, std::uint64_t{1} << 32),
            "a sparse tensor has at most 4294967295 elements, not 4294967296; a longer one is cut into shards");
  EXPECT_FALSE(CompressedTensor::make(10, DataType::kF32, {1, 1}, std::vector<std::byte>(8)));
  EXPECT_FALSE(CompressedTensor::make(10, DataType::kF32, {1, 10}, std::vector<std::byte>(8)));
  EXPECT_FALSE(CompressedTensor::make(10, DataType::kF32, {1, 2}, std::vector<std::byte>(7)));
  EXPECT_FALSE(CompressedTensor::make(1, DataType::kF32, {0, 1}, std::vector<std::byte>(8)));
}

}  // namespace
}  // namespace nexar
