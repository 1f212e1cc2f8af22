#include "crypto/secret.h"

#include <algorithm>
#include <type_traits>

#include <gtest/gtest.h>

#include "crypto/hex.h"

namespace nexar::crypto {
namespace {

TEST(Secret, WipingLeavesZeros) {
  std::vector<std::byte> bytes = noise(100, 1);
  wipe(bytes);
  EXPECT_EQ(bytes, std::vector<std::byte>(100));
  wipe({});
}

TEST(Secret, ComparisonSeesEveryByteAndTheLength) {
  const std::vector<std::byte> a = noise(33, 2);
  EXPECT_TRUE(equal_constant_time(a, a));
  EXPECT_TRUE(equal_constant_time({}, {}));
  EXPECT_FALSE(equal_constant_time(a, base::ByteView(a).first(32)));
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::vector<std::byte> b = a;
    b[i] ^= std::byte{1};
    EXPECT_FALSE(equal_constant_time(a, b)) << i;
  }
}

TEST(Secret, HasOneOwner) {
  static_assert(!std::is_copy_constructible_v<Secret> && !std::is_copy_assignable_v<Secret>);
  const std::vector<std::byte> content = noise(16, 3);
  Secret first{base::ByteView(content)};
  Secret second = std::move(first);
  EXPECT_EQ(first.size(), 0u);  // NOLINT: that a moved-from secret is empty is what is tested
  EXPECT_TRUE(std::ranges::equal(second.view(), content));
  Secret third(4);
  third = std::move(second);
  EXPECT_TRUE(std::ranges::equal(third.view(), content));
}

}  // namespace
}  // namespace nexar::crypto
