#include "base/stream_copy.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace nexar::base {
namespace {

TEST(StreamCopy, CopiesAnyLengthAtAnyAlignmentAndNothingElse) {
  std::mt19937 random(1);
  std::vector<std::byte> from(1000);
  for (std::byte& byte : from) byte = static_cast<std::byte>(random());
  for (std::size_t offset = 0; offset < 65; offset += 3)
    for (const std::size_t bytes : {0, 1, 15, 63, 64, 65, 127, 128, 300, 777}) {
      std::vector<std::byte> to(1000, std::byte{0xA5});
      stream_copy(to.data() + offset, from.data() + offset / 2, bytes);
      std::vector<std::byte> expected(1000, std::byte{0xA5});
      std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(offset / 2), bytes, expected.begin() + static_cast<std::ptrdiff_t>(offset));
      ASSERT_EQ(to, expected) << offset << " " << bytes;
    }
}

}  // namespace
}  // namespace nexar::base
