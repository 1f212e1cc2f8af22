#include "crypto/header_mask.h"

#include <array>
#include <thread>

#include <gtest/gtest.h>

#include "crypto/hex.h"

namespace nexar::crypto {
namespace {

class HeaderMaskOf : public testing::TestWithParam<MaskEngine> {
 protected:
  void SetUp() override {
    if (!is_available(GetParam())) GTEST_SKIP() << "this CPU has no AES instructions";
  }
};

std::string mask_of(const HeaderMask& key, base::ByteView sample) {
  std::array<std::byte, kHeaderMaskBytes> mask;
  key.mask(mask, sample.first<kHeaderSampleBytes>());
  return to_hex(mask);
}

// RFC 9001, appendix A.2 and A.3.
TEST_P(HeaderMaskOf, QuicPacketsIsTheKnownOne) {
  const HeaderMask client(from_hex("9f50449e04a0e810283a1e9933adedd2"), GetParam());
  EXPECT_EQ(mask_of(client, from_hex("d1b1c98dd7689fb8ec11d242b123dc9b")), "437b9aec36");
  EXPECT_EQ(mask_of(client, from_hex("d1b1c98dd7689fb8ec11d242b123dc9b")), "437b9aec36") << "and does not depend on what came before";
  HeaderMask server(from_hex("c206b8d9b9f0f37644430b490eeaa314"), GetParam());
  const HeaderMask moved = std::move(server);
  EXPECT_EQ(mask_of(moved, from_hex("2cd0991cd25b0aac406a5816b6394100")), "2ec0d8356a");
}

TEST_P(HeaderMaskOf, OneKeyServesTwoThreads) {
  const HeaderMask key(noise(16, 1), GetParam());
  const std::vector<std::byte> sample = noise(16, 2);
  const std::string expected = mask_of(key, sample);
  const auto ask = [&] {
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(mask_of(key, sample), expected);
  };
  std::thread other(ask);
  ask();
  other.join();
}

INSTANTIATE_TEST_SUITE_P(Engines, HeaderMaskOf, testing::Values(MaskEngine::kGnuTls, MaskEngine::kAesInstructions),
                         [](const auto& tested) { return tested.param == MaskEngine::kGnuTls ? "GnuTls" : "AesInstructions"; });

TEST(HeaderMask, EnginesAgree) {
  if (!is_available(MaskEngine::kAesInstructions)) GTEST_SKIP() << "this CPU has no AES instructions";
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const std::vector<std::byte> key = noise(16, 2 * seed);
    const std::vector<std::byte> sample = noise(16, 2 * seed + 1);
    ASSERT_EQ(mask_of(HeaderMask(key, MaskEngine::kGnuTls), sample), mask_of(HeaderMask(key, MaskEngine::kAesInstructions), sample))
        << seed;
  }
}

}  // namespace
}  // namespace nexar::crypto
