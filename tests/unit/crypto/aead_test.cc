#include "crypto/aead.h"

#include <algorithm>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "crypto/hex.h"

namespace nexar::crypto {
namespace {

using Bytes = std::vector<std::byte>;

Nonce nonce_of(base::ByteView bytes) {
  Nonce nonce{};
  std::ranges::copy(bytes, nonce.begin());
  return nonce;
}

Bytes sealed_of(const AeadKey& key, base::ByteView plain, const Nonce& nonce, base::ByteView aad) {
  Bytes sealed(plain.size() + kAeadTagBytes);
  key.seal(sealed, plain, nonce, aad);
  return sealed;
}

class Aead : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    if (!is_available(GetParam())) GTEST_SKIP() << "this build or this CPU has no " << to_string(GetParam());
  }
};

struct KnownAnswer {
  const char* key;
  const char* nonce;
  const char* aad;
  const char* plain;
  const char* sealed;  // with the tag
};

// Test cases 1 to 4 of the GCM specification.
constexpr KnownAnswer kKnownAnswers[] = {
    {"00000000000000000000000000000000", "000000000000000000000000", "", "", "58e2fccefa7e3061367f1d57a4e7455a"},
    {"00000000000000000000000000000000", "000000000000000000000000", "", "00000000000000000000000000000000",
     "0388dace60b6a392f328c2b971b2fe78ab6e47d42cec13bdf53a67b21257bddf"},
    {"feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888", "",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255",
     "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091473f5985"
     "4d5c2af327cd64a62cf35abd2ba6fab4"},
    {"feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888", "feedfacedeadbeeffeedfacedeadbeefabaddad2",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
     "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091"
     "5bc94fbc3221a5db94fae95ae7121a47"},
};

TEST_P(Aead, GivesTheKnownAnswers) {
  for (const KnownAnswer& known : kKnownAnswers) {
    const AeadKey key(from_hex(known.key), GetParam());
    const Nonce nonce = nonce_of(from_hex(known.nonce));
    const Bytes plain = from_hex(known.plain);
    const Bytes aad = from_hex(known.aad);
    const Bytes sealed = sealed_of(key, plain, nonce, aad);
    EXPECT_EQ(to_hex(sealed), known.sealed);
    Bytes opened(plain.size(), std::byte{0xee});
    EXPECT_TRUE(key.open(opened, sealed, nonce, aad));
    EXPECT_EQ(opened, plain);
  }
}

TEST_P(Aead, WorksInPlace) {
  const AeadKey key(noise(16, 1), GetParam());
  const Nonce nonce = nonce_of(noise(12, 2));
  const Bytes aad = noise(8, 3);
  for (const std::size_t size : {0u, 1u, 15u, 16u, 17u, 1452u, 16384u, 65000u}) {
    const Bytes plain = noise(size, 4);
    Bytes buffer = plain;
    buffer.resize(size + kAeadTagBytes);
    key.seal(buffer, base::ByteView(buffer).first(size), nonce, aad);
    ASSERT_EQ(buffer, sealed_of(key, plain, nonce, aad)) << size;
    ASSERT_TRUE(key.open(base::ByteSpan(buffer).first(size), buffer, nonce, aad)) << size;
    ASSERT_TRUE(std::ranges::equal(base::ByteView(buffer).first(size), plain)) << size;
  }
}

TEST_P(Aead, NoticesAChangeOfAnyByte) {
  const AeadKey key(noise(16, 1), GetParam());
  const Bytes nonce = noise(12, 2);
  const Bytes aad = noise(8, 3);
  const Bytes plain = noise(50, 4);
  const Bytes sealed = sealed_of(key, plain, nonce_of(nonce), aad);

  const auto opens = [&](const Bytes& changed_sealed, const Bytes& changed_nonce, const Bytes& changed_aad) {
    Bytes out(plain.size(), std::byte{0xee});
    const bool opened = key.open(out, changed_sealed, nonce_of(changed_nonce), changed_aad);
    if (!opened) {
      EXPECT_EQ(out, Bytes(plain.size())) << "nothing unauthenticated is left behind";
    }
    return opened;
  };
  const auto flipped = [](Bytes bytes, std::size_t position) {
    bytes[position] ^= std::byte{0x10};
    return bytes;
  };

  EXPECT_TRUE(opens(sealed, nonce, aad));
  for (std::size_t i = 0; i < sealed.size(); ++i) EXPECT_FALSE(opens(flipped(sealed, i), nonce, aad)) << "sealed byte " << i;
  for (std::size_t i = 0; i < nonce.size(); ++i) EXPECT_FALSE(opens(sealed, flipped(nonce, i), aad)) << "nonce byte " << i;
  for (std::size_t i = 0; i < aad.size(); ++i) EXPECT_FALSE(opens(sealed, nonce, flipped(aad, i))) << "aad byte " << i;
  EXPECT_FALSE(opens(sealed, nonce, {}));
}

TEST_P(Aead, RefusesWhatIsTooShortForATag) {
  const AeadKey key(noise(16, 1), GetParam());
  for (std::size_t size = 0; size < kAeadTagBytes; ++size) {
    EXPECT_FALSE(key.open(base::ByteSpan(), noise(size, 2), Nonce{}, {})) << size;
  }
}

TEST_P(Aead, WipesInPlaceWhatDoesNotOpen) {
  const AeadKey key(noise(16, 1), GetParam());
  Bytes buffer = noise(1000, 2);
  EXPECT_FALSE(key.open(base::ByteSpan(buffer).first(984), buffer, Nonce{}, {}));
  EXPECT_TRUE(std::ranges::all_of(base::ByteView(buffer).first(984), [](std::byte byte) { return byte == std::byte{}; }));
}

// Sizes of regions around the block size, with empty ones, up to the most there may be.
std::vector<std::size_t> region_sizes(std::mt19937& random) {
  std::vector<std::size_t> sizes(random() % (kAeadRegionsMax + 1));
  for (std::size_t& size : sizes) size = random() % 3 == 0 ? 16 * (random() % 4) : random() % 2000;
  return sizes;
}

TEST_P(Aead, GathersAndScattersRegions) {
  const AeadKey key(noise(16, 1), GetParam());
  const Nonce nonce = nonce_of(noise(12, 2));
  const Bytes aad = noise(8, 3);
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const std::vector<std::size_t> sizes = round == 0 ? std::vector<std::size_t>(kAeadRegionsMax, 33) : region_sizes(random);
    std::vector<Bytes> parts;
    std::vector<base::ByteView> plain;
    Bytes whole;
    for (const std::size_t size : sizes) parts.push_back(noise(size, static_cast<std::uint32_t>(random())));
    for (const Bytes& part : parts) {
      plain.emplace_back(part);
      whole.insert(whole.end(), part.begin(), part.end());
    }
    Bytes sealed(whole.size() + kAeadTagBytes);
    key.seal(sealed, plain, nonce, aad);
    ASSERT_EQ(sealed, sealed_of(key, whole, nonce, aad)) << round;

    std::vector<Bytes> opened;
    std::vector<base::ByteSpan> out;
    for (const std::size_t size : sizes) opened.emplace_back(size);
    for (Bytes& part : opened) out.emplace_back(part);
    ASSERT_TRUE(key.open(out, sealed, nonce, aad)) << round;
    ASSERT_EQ(opened, parts) << round;

    sealed[random() % sealed.size()] ^= std::byte{0x80};
    ASSERT_FALSE(key.open(out, sealed, nonce, aad)) << round;
    for (const Bytes& part : opened) ASSERT_EQ(part, Bytes(part.size())) << round;
  }
}

TEST_P(Aead, TakesNoMoreRegionsThanItSays) {
  const AeadKey key(noise(16, 1), GetParam());
  const std::vector<base::ByteView> plain(kAeadRegionsMax + 1);
  const std::vector<base::ByteSpan> out(kAeadRegionsMax + 1);
  Bytes sealed(kAeadTagBytes);
  EXPECT_DEATH(key.seal(sealed, plain, Nonce{}, {}), "a few regions");
  EXPECT_DEATH((void)key.open(out, sealed, Nonce{}, {}), "a few regions");
}

TEST_P(Aead, OneKeySealsInTwoThreadsAtOnce) {
  const AeadKey key(noise(16, 1), GetParam());
  const Bytes aad = noise(13, 2);
  const auto work = [&](std::uint32_t seed) {
    const Bytes plain = noise(3000, seed);
    const Nonce nonce = nonce_of(noise(12, seed));
    const Bytes expected = sealed_of(AeadKey(noise(16, 1), GetParam()), plain, nonce, aad);
    Bytes opened(plain.size());
    for (int i = 0; i < 500; ++i) {
      ASSERT_EQ(sealed_of(key, plain, nonce, aad), expected);
      ASSERT_TRUE(key.open(opened, expected, nonce, aad));
      ASSERT_EQ(opened, plain);
    }
  };
  std::thread other(work, 10);
  work(11);
  other.join();
}

TEST_P(Aead, AKeyCanBeMoved) {
  AeadKey first(noise(16, 1), GetParam());
  AeadKey second(noise(16, 2), GetParam());
  const Bytes sealed = sealed_of(first, noise(20, 3), Nonce{}, {});
  second = std::move(first);
  const AeadKey third = std::move(second);
  EXPECT_EQ(sealed_of(third, noise(20, 3), Nonce{}, {}), sealed);
}

INSTANTIATE_TEST_SUITE_P(Backends, Aead, testing::Values(Backend::kGnuTls, Backend::kIpsecMb),
                         [](const auto& tested) { return tested.param == Backend::kGnuTls ? "GnuTls" : "IpsecMb"; });

TEST(AeadBackends, GiveTheSameBytes) {
  if (!is_available(Backend::kIpsecMb)) GTEST_SKIP() << "this build or this CPU has no ipsec-mb";
  std::mt19937 random(99);
  std::vector<std::size_t> sizes = {0, 1, 16, 70'000};
  for (int i = 0; i < 150; ++i) sizes.push_back(random() % (i % 2 == 0 ? 70'001 : 600));
  for (const std::size_t size : sizes) {
    const Bytes key = noise(16, static_cast<std::uint32_t>(random()));
    const Nonce nonce = nonce_of(noise(12, static_cast<std::uint32_t>(random())));
    const Bytes aad = noise(random() % 100, static_cast<std::uint32_t>(random()));
    const Bytes plain = noise(size, static_cast<std::uint32_t>(random()));
    const Bytes one = sealed_of(AeadKey(key, Backend::kGnuTls), plain, nonce, aad);
    const Bytes other = sealed_of(AeadKey(key, Backend::kIpsecMb), plain, nonce, aad);
    ASSERT_EQ(one, other) << size;
    Bytes opened(size);
    ASSERT_TRUE(AeadKey(key, Backend::kIpsecMb).open(opened, one, nonce, aad)) << size;
    ASSERT_EQ(opened, plain) << size;
  }
}

TEST(AeadBackends, SayWhatTheyAre) {
  EXPECT_EQ(to_string(Backend::kGnuTls), "GnuTLS");
  EXPECT_EQ(to_string(Backend::kIpsecMb), "ipsec-mb");
  EXPECT_TRUE(is_available(Backend::kGnuTls));
  EXPECT_TRUE(is_available(aead_backend()));
  const std::string description = aead_description();
  EXPECT_TRUE(description.starts_with("AES-128-GCM by " + std::string(to_string(aead_backend())))) << description;
}

}  // namespace
}  // namespace nexar::crypto
