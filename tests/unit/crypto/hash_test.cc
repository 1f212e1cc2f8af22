#include "crypto/hash.h"

#include <gtest/gtest.h>

#include "crypto/hex.h"

namespace nexar::crypto {
namespace {

std::string hex(const Secret& secret) { return to_hex(secret.view()); }

TEST(Sha256, GivesTheKnownDigests) {
  EXPECT_EQ(to_hex(sha256({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(to_hex(sha256(from_text("abc"))), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, OfPiecesIsTheDigestOfTheWhole) {
  const std::vector<std::byte> data = noise(1000, 1);
  Sha256Stream stream;
  std::size_t offset = 0;
  for (const std::size_t piece : {0u, 1u, 63u, 64u, 65u, 807u}) {
    stream.update(base::ByteView(data).subspan(offset, piece));
    offset += piece;
  }
  Sha256Stream moved = std::move(stream);
  EXPECT_EQ(moved.finish(), sha256(data));
  moved.update(from_text("abc"));
  EXPECT_EQ(moved.finish(), sha256(from_text("abc"))) << "it starts again from nothing";
}

// RFC 4231, cases 1, 2, 3 and 6.
TEST(Hmac, GivesTheKnownCodes) {
  EXPECT_EQ(to_hex(hmac_sha256(std::vector(20, std::byte{0x0b}), {from_text("Hi There")})),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(to_hex(hmac_sha256(from_text("Jefe"), {from_text("what do ya want "), {}, from_text("for nothing?")})),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(to_hex(hmac_sha256(std::vector(20, std::byte{0xaa}), {std::vector(50, std::byte{0xdd})})),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  EXPECT_EQ(to_hex(hmac_sha256(std::vector(131, std::byte{0xaa}), {from_text("Test Using Larger Than Block-Size Key - Hash Key First")})),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

// RFC 5869, appendix A.1 and A.3.
TEST(Hkdf, GivesTheKnownKeys) {
  const std::vector<std::byte> input(22, std::byte{0x0b});
  const Secret key = hkdf_extract(from_hex("000102030405060708090a0b0c"), input);
  EXPECT_EQ(hex(key), "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5");
  EXPECT_EQ(hex(hkdf_expand(key.view(), from_hex("f0f1f2f3f4f5f6f7f8f9"), 42)),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");

  const Secret unsalted = hkdf_extract({}, input);
  EXPECT_EQ(hex(unsalted), "19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04");
  EXPECT_EQ(hex(hkdf_expand(unsalted.view(), {}, 42)),
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8");
}

// RFC 5869, appendix A.2: everything longer than a block.
TEST(Hkdf, TakesLongInputs) {
  std::vector<std::byte> numbers;
  for (int i = 0; i < 256; ++i) numbers.push_back(static_cast<std::byte>(i));
  const base::ByteView all = numbers;
  const Secret key = hkdf_extract(all.subspan(0x60, 80), all.first(80));
  EXPECT_EQ(hex(key), "06a6b88c5853361a06104c9ceb35b45cef760014904671014a193f40c15fc244");
  EXPECT_EQ(hex(hkdf_expand(key.view(), all.last(80), 82)),
            "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09"
            "da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87");
}

TEST(Hkdf, GivesBetweenNothingAnd255Blocks) {
  const std::vector<std::byte> key = noise(32, 4);
  EXPECT_EQ(hkdf_expand(key, {}, 0).size(), 0u);
  const Secret longest = hkdf_expand(key, {}, kHkdfBytesMax);
  EXPECT_EQ(longest.size(), 8160u);
  EXPECT_EQ(to_hex(longest.view().first(40)), hex(hkdf_expand(key, {}, 40)));
  EXPECT_DEATH((void)hkdf_expand(key, {}, kHkdfBytesMax + 1), "255 blocks");
}

// RFC 9001, appendix A.1: the first keys of a QUIC connection.
TEST(Hkdf, DerivesTheInitialKeysOfQuic) {
  const Secret initial = hkdf_extract(from_hex("38762cf7f55934b34d179ae6a4c80cadccbb7f0a"), from_hex("8394c8f03e515708"));
  const Secret client = hkdf_expand_label(initial.view(), "client in", {}, 32);
  EXPECT_EQ(hex(client), "c00cf151ca5be075ed0ebfb5c80323c42d6b7db67881289af4008f1f6c357aea");
  EXPECT_EQ(hex(hkdf_expand_label(client.view(), "quic key", {}, 16)), "1f369613dd76d5467730efcbe3b1a22d");
  EXPECT_EQ(hex(hkdf_expand_label(client.view(), "quic iv", {}, 12)), "fa044b2f42a3fd3b46fb255c");
  EXPECT_EQ(hex(hkdf_expand_label(client.view(), "quic hp", {}, 16)), "9f50449e04a0e810283a1e9933adedd2");
  const Secret server = hkdf_expand_label(initial.view(), "server in", {}, 32);
  EXPECT_EQ(hex(server), "3c199828fd139efd216c155ad844cc81fb82fa8d7446fa7d78be803acdda951b");
}

TEST(Hkdf, LabelsAndContextsHaveOneByteForTheirLength) {
  const std::vector<std::byte> key = noise(32, 5);
  const std::string label(kLabelBytesMax, 'l');
  const std::vector<std::byte> context = noise(kLabelContextBytesMax, 6);
  EXPECT_EQ(hkdf_expand_label(key, label, context, 16).size(), 16u);
  EXPECT_NE(hex(hkdf_expand_label(key, "a", context, 16)), hex(hkdf_expand_label(key, "a", {}, 16)));
  EXPECT_DEATH((void)hkdf_expand_label(key, label + "l", context, 16), "one byte");
  EXPECT_DEATH((void)hkdf_expand_label(key, label, noise(kLabelContextBytesMax + 1, 7), 16), "one byte");
}

}  // namespace
}  // namespace nexar::crypto
