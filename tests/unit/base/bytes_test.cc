#include "base/bytes.h"

#include <array>
#include <cstdint>

#include <gtest/gtest.h>

#include "base/hash.h"

namespace nexar::base {
namespace {

TEST(Bytes, NumbersAreLittleEndianAtAnyAddress) {
  std::array<std::byte, 9> bytes{};
  store_le<std::uint64_t>(bytes.data() + 1, 0x0102030405060708u);
  EXPECT_EQ(bytes[1], std::byte{8});
  EXPECT_EQ(bytes[8], std::byte{1});
  EXPECT_EQ(load_le<std::uint64_t>(bytes.data() + 1), 0x0102030405060708u);
  EXPECT_EQ(load_le<std::uint16_t>(bytes.data() + 1), 0x0708u);
  EXPECT_EQ(load_le<std::int8_t>(bytes.data() + 8), 1);
}

TEST(Bytes, AProductThatDoesNotFitIsNothing) {
  constexpr std::uint64_t kMax = UINT64_MAX;
  EXPECT_EQ(checked_multiply<std::uint64_t>(kMax, 1), kMax);
  EXPECT_EQ(checked_multiply<std::uint64_t>(kMax, 0), 0u);
  EXPECT_EQ(checked_multiply<std::uint64_t>(0, kMax), 0u);
  EXPECT_EQ(checked_multiply<std::uint64_t>(kMax / 8, 8), kMax - 7);
  EXPECT_EQ(checked_multiply<std::uint64_t>(kMax / 8 + 1, 8), std::nullopt);
  EXPECT_EQ(checked_multiply<std::uint64_t>(1ull << 32, 1ull << 32), std::nullopt);
}

// The digest is compared between builds, so it may never change.
TEST(Hash, IsTheSameInEveryBuild) {
  EXPECT_EQ(hash64(""), 0xcbf29ce484222325u);
  EXPECT_EQ(hash64("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(hash64("foobar"), 0x85944171f73967e8u);
}

}  // namespace
}  // namespace nexar::base
