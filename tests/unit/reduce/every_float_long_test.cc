// Every one of the 2^32 floats narrowed on every target, compared with the scalar conversion of nexar/small_float.h, which the unit tests
// compare with the definition.
#include <bit>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "nexar/data_type.h"
#include "reduce/targets.h"
#include "reduce/widen.h"

namespace nexar::reduce {
namespace {

constexpr std::size_t kBlock = 1 << 16;

template <typename T>
bool same(T a, T b) {
  const auto x = static_cast<float>(a);
  const auto y = static_cast<float>(b);
  return a == b || (x != x && y != y);
}

template <typename T>
void check_every_float() {
  std::vector<float> floats(kBlock);
  std::vector<T> expected(kBlock);
  std::vector<T> actual(kBlock);
  for (std::uint64_t start = 0; start < (1ull << 32); start += kBlock) {
    for (std::size_t i = 0; i < kBlock; ++i) {
      floats[i] = std::bit_cast<float>(static_cast<std::uint32_t>(start + i));
      expected[i] = T(floats[i]);
    }
    for (const test::Target& target : test::all_targets()) {
      narrow(data_type_of<T>, floats.data(), actual.data(), kBlock, target.table);
      for (std::size_t i = 0; i < kBlock; ++i) ASSERT_TRUE(same(actual[i], expected[i])) << target.name << " 0x" << std::hex << start + i;
    }
  }
}

TEST(EveryFloat, NarrowsToF16) { check_every_float<f16>(); }
TEST(EveryFloat, NarrowsToBf16) { check_every_float<bf16>(); }
TEST(EveryFloat, NarrowsToF8e4m3) { check_every_float<f8e4m3>(); }
TEST(EveryFloat, NarrowsToF8e5m2) { check_every_float<f8e5m2>(); }

}  // namespace
}  // namespace nexar::reduce
