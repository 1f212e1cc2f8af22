#include "types/core_set.h"

#include <vector>

#include <gtest/gtest.h>

namespace nexar {
namespace {

TEST(CoreSet, HasABitForEachCoreAndNoByteAfterTheHighest) {
  const CoreSet cores = {0, 3, 9};
  ASSERT_EQ(cores.bytes().size(), 2u);
  EXPECT_EQ(cores.bytes()[0], std::byte{0b1001});
  EXPECT_EQ(cores.bytes()[1], std::byte{0b10});
  EXPECT_EQ(cores.size(), 3);
  EXPECT_EQ(CoreSet({9, 0, 3, 3}), cores);
  EXPECT_EQ(CoreSet({CoreSet::kCoreEnd - 1}).bytes().size(), CoreSet::kBytesMax);
}

TEST(CoreSet, IsNotKnownWhileItIsEmpty) {
  EXPECT_FALSE(CoreSet().is_known());
  EXPECT_EQ(CoreSet().size(), 0);
  EXPECT_TRUE(CoreSet({1023}).is_known());
}

TEST(CoreSet, MeetsAnotherWhereACoreIsInBoth) {
  EXPECT_TRUE(CoreSet({1, 70}).meets({70}));
  EXPECT_TRUE(CoreSet({70}).meets({1, 70}));
  EXPECT_FALSE(CoreSet({1, 70}).meets({0, 2, 71}));
  EXPECT_FALSE(CoreSet({1}).meets({}));
  EXPECT_FALSE(CoreSet().meets({}));
}

TEST(CoreSet, ComesBackFromItsBytesAndHasNoOtherForm) {
  for (const CoreSet& cores : {CoreSet(), CoreSet({0}), CoreSet({8}), CoreSet({1, 1023})})
    EXPECT_EQ(CoreSet::from_bytes(cores.bytes()), cores);
  EXPECT_EQ(CoreSet::from_bytes(std::vector{std::byte{1}, std::byte{0}}), std::nullopt);
  EXPECT_EQ(CoreSet::from_bytes(std::vector{std::byte{0}}), std::nullopt);
  EXPECT_EQ(CoreSet::from_bytes(std::vector(CoreSet::kBytesMax + 1, std::byte{1})), std::nullopt);
}

}  // namespace
}  // namespace nexar
