#include "crypto/private_key.h"

#include <gtest/gtest.h>

#include "crypto/hex.h"

namespace nexar::crypto {
namespace {

using Bytes = std::vector<std::byte>;

Bytes copy_of(base::ByteView bytes) { return {bytes.begin(), bytes.end()}; }

// RFC 8410, section 10.3 and 10.1: a private key and its public half.
constexpr const char* kKnownKey = "302e020100300506032b657004220420d4ee72dbf913584ad5b6d8f1f769f8ad3afe7c28cbf1d4fbe097a88f44755842";
constexpr const char* kKnownPublicKey = "302a300506032b657003210019bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1";

TEST(PrivateKey, HasTheFingerprintOfItsPublicHalf) {
  const PrivateKey key = PrivateKey::parse(from_hex(kKnownKey)).value();
  EXPECT_EQ(to_hex(key.public_fingerprint()), to_hex(sha256(from_hex(kKnownPublicKey))));
}

TEST(PrivateKey, SurvivesExportAndImport) {
  const PrivateKey key = PrivateKey::generate().value();
  EXPECT_EQ(key.der().size(), 48u);
  const PrivateKey again = PrivateKey::parse(key.der().view()).value();
  EXPECT_EQ(again.public_fingerprint(), key.public_fingerprint());
  EXPECT_TRUE(equal_constant_time(again.der().view(), key.der().view()));
  EXPECT_NE(PrivateKey::generate().value().public_fingerprint(), key.public_fingerprint());
}

TEST(PrivateKey, RefusesWhatIsNone) {
  const Bytes der = from_hex(kKnownKey);
  for (std::size_t size = 0; size < der.size(); ++size) {
    EXPECT_FALSE(PrivateKey::parse(base::ByteView(der).first(size))) << size;
  }
  // The same structure with X25519's object identifier.
  Bytes other_curve = der;
  other_curve[11] = std::byte{0x6e};
  EXPECT_FALSE(PrivateKey::parse(other_curve));
  const Result<PrivateKey> huge = PrivateKey::parse(Bytes(kDerBytesMax + 1));
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(huge.error().sentence(), "a private key of 4097 bytes is larger than any of ours, which have at most 4096");
}

TEST(CertificateRequest, ProvesThatItsSenderHasTheKey) {
  const PrivateKey key = PrivateKey::generate().value();
  const CertificateRequest made = CertificateRequest::make(key).value();
  const CertificateRequest read = CertificateRequest::parse(made.der()).value();
  EXPECT_EQ(read.public_fingerprint(), key.public_fingerprint());
  EXPECT_EQ(copy_of(read.der()), copy_of(made.der()));
}

TEST(CertificateRequest, RefusesEveryTruncationAndTooMuch) {
  const CertificateRequest made = CertificateRequest::make(PrivateKey::generate().value()).value();
  for (std::size_t size = 0; size < made.der().size(); ++size) EXPECT_FALSE(CertificateRequest::parse(made.der().first(size))) << size;
  const Result<CertificateRequest> huge = CertificateRequest::parse(Bytes(kDerBytesMax + 1));
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().code(), ErrorCode::kRefused);
}

// Whatever bit is changed, nobody gets a certificate for a key that did not sign.
TEST(CertificateRequest, RefusesEveryChangedBit) {
  const CertificateRequest made = CertificateRequest::make(PrivateKey::generate().value()).value();
  Bytes der = copy_of(made.der());
  for (std::size_t bit = 0; bit < 8 * der.size(); ++bit) {
    const auto mask = static_cast<std::byte>(1u << bit % 8);
    der[bit / 8] ^= mask;
    EXPECT_FALSE(CertificateRequest::parse(der)) << "bit " << bit;
    der[bit / 8] ^= mask;
  }
}

}  // namespace
}  // namespace nexar::crypto
