#include "crypto/certificate.h"

#include <functional>

#include <gnutls/abstract.h>
#include <gnutls/x509.h>
#include <gtest/gtest.h>

#include "crypto/authority.h"
#include "crypto/hex.h"
#include "crypto/identity.h"

namespace nexar::crypto {
namespace {

using Bytes = std::vector<std::byte>;
using std::chrono::sys_seconds;
using namespace std::chrono_literals;

constexpr sys_seconds kNow = std::chrono::sys_days(std::chrono::year(2026) / 11 / 15);

Bytes copy_of(base::ByteView bytes) { return {bytes.begin(), bytes.end()}; }

// A cluster of one node, and what goes wrong around it.
class Certificates : public testing::Test {
 protected:
  const ClusterId cluster_ = cluster_id(0xc1);
  const NodeId node_ = node_id(0x0d);
  const LocalAuthority local_ = LocalAuthority::make(cluster_).value();
  const Identity identity_ = local_.make_node(node_, kNow).value();

  Result<void> check(const Certificate& leaf, sys_seconds now = kNow) const { return verify(leaf, identity_.authority, cluster_, now); }

  static std::string sentence_of(const Result<void>& result) {
    if (result) return "accepted";
    EXPECT_EQ(result.error().code(), ErrorCode::kRefused);
    return result.error().sentence();
  }
};

TEST_F(Certificates, SayWhoTheyAreFor) {
  const Certificate& leaf = identity_.certificate;
  EXPECT_EQ(leaf.node(), node_);
  EXPECT_EQ(leaf.cluster(), cluster_);
  EXPECT_FALSE(leaf.is_authority());
  EXPECT_EQ(leaf.public_fingerprint(), identity_.key.public_fingerprint());
  EXPECT_EQ(leaf.not_before(), kNow - 10min);
  EXPECT_EQ(leaf.not_after(), kNow + std::chrono::days(30));

  const Certificate& authority = identity_.authority;
  EXPECT_TRUE(authority.is_authority());
  EXPECT_EQ(authority.cluster(), cluster_);
  EXPECT_EQ(authority.node(), NodeId{});
  EXPECT_EQ(authority.public_fingerprint(), local_.authority().key().public_fingerprint());
}

TEST_F(Certificates, OfTheClusterAreAccepted) {
  EXPECT_EQ(sentence_of(check(identity_.certificate)), "accepted");
  EXPECT_EQ(sentence_of(verify_authority(identity_.authority, local_.authority().key().public_fingerprint(), cluster_)), "accepted");
  EXPECT_LT(identity_.certificate.der().size(), 600u) << "far from the limit";
}

TEST_F(Certificates, FollowFromTheKeyAndTheArguments) {
  const Authority again = Authority::make(PrivateKey::parse(local_.authority().key().der().view()).value(), cluster_).value();
  EXPECT_EQ(copy_of(again.certificate().der()), copy_of(identity_.authority.der()));
  const CertificateRequest request = CertificateRequest::make(identity_.key).value();
  EXPECT_EQ(copy_of(again.issue(request, node_, kNow).value().der()), copy_of(identity_.certificate.der()));
  EXPECT_NE(copy_of(again.issue(request, node_, kNow + 1s).value().der()), copy_of(identity_.certificate.der()));
}

TEST_F(Certificates, OfAnotherAuthorityAreRefused) {
  const LocalAuthority impostor = LocalAuthority::make(cluster_).value();
  const Certificate leaf = impostor.make_node(node_, kNow).value().certificate;
  EXPECT_EQ(sentence_of(check(leaf)), "the certificate of node 0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d was issued by another authority");
  EXPECT_NE(sentence_of(verify_authority(impostor.authority().certificate(), local_.authority().key().public_fingerprint(), cluster_)),
            "accepted");
}

TEST_F(Certificates, OfAnotherClusterAreRefused) {
  const ClusterId other = cluster_id(0xc2);
  EXPECT_EQ(
      sentence_of(verify(identity_.certificate, identity_.authority, other, kNow)),
      "node 0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d is of cluster c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1, not of c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2");
  const Authority same_key = Authority::make(PrivateKey::parse(local_.authority().key().der().view()).value(), other).value();
  EXPECT_EQ(sentence_of(verify(identity_.certificate, same_key.certificate(), cluster_, kNow)),
            "node 0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d was vouched for by the authority of cluster c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2, not of "
            "c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1");
  EXPECT_NE(sentence_of(verify_authority(identity_.authority, identity_.authority.public_fingerprint(), other)), "accepted");
}

TEST_F(Certificates, AreGoodFromTheirFirstSecondToTheirLast) {
  const Certificate& leaf = identity_.certificate;
  EXPECT_EQ(sentence_of(check(leaf, leaf.not_before())), "accepted");
  EXPECT_EQ(sentence_of(check(leaf, leaf.not_after())), "accepted");
  EXPECT_EQ(sentence_of(check(leaf, leaf.not_before() - 1s)),
            "the certificate of node 0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d is not valid before 2026-11-14T23:50:00Z, and the clock here says "
            "2026-11-14T23:49:59Z");
  EXPECT_EQ(sentence_of(check(leaf, leaf.not_after() + 1s)),
            "the certificate of node 0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d expired at 2026-12-15T00:00:00Z, and the clock here says "
            "2026-12-15T00:00:01Z");
}

TEST_F(Certificates, OfAnAuthorityAreNoNodes) {
  EXPECT_EQ(sentence_of(check(identity_.authority)), "an authority's certificate was shown where a node's is needed");
}

TEST_F(Certificates, OfANodeVouchForNobody) {
  // The node makes itself an authority with the key it has a certificate for.
  const Authority usurper = Authority::make(PrivateKey::parse(identity_.key.der().view()).value(), cluster_).value();
  const CertificateRequest request = CertificateRequest::make(PrivateKey::generate().value()).value();
  const Certificate leaf = usurper.issue(request, node_id(0x0e), kNow).value();
  EXPECT_EQ(sentence_of(verify(leaf, identity_.certificate, cluster_, kNow)),
            "node 0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e was vouched for by a certificate that may not sign others");
  EXPECT_EQ(sentence_of(check(leaf)), "the certificate of node 0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e was issued by another authority");
  EXPECT_EQ(sentence_of(verify_authority(identity_.certificate, identity_.certificate.public_fingerprint(), cluster_)),
            "a certificate that may not sign others was shown where an authority's is needed");
}

TEST_F(Certificates, WithABadSignatureAreRefused) {
  Bytes der = copy_of(identity_.certificate.der());
  der[der.size() - 40] ^= std::byte{1};
  EXPECT_EQ(sentence_of(check(Certificate::parse(der).value())),
            "the certificate of node 0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d0d has a bad signature");
  Bytes authority = copy_of(identity_.authority.der());
  authority[authority.size() - 40] ^= std::byte{1};
  EXPECT_EQ(sentence_of(verify_authority(Certificate::parse(authority).value(), identity_.authority.public_fingerprint(), cluster_)),
            "the certificate of the authority has a bad signature");
}

TEST_F(Certificates, AreRefusedWhenTruncatedAnywhereOrTooLong) {
  const base::ByteView der = identity_.certificate.der();
  for (std::size_t size = 0; size < der.size(); ++size) EXPECT_FALSE(Certificate::parse(der.first(size))) << size;
  Bytes longer = copy_of(der);
  longer.push_back(std::byte{});
  EXPECT_FALSE(Certificate::parse(longer));
  longer.resize(kDerBytesMax + 1);
  const Result<Certificate> huge = Certificate::parse(longer);
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().sentence(), "a certificate of 4097 bytes is larger than any of ours, which have at most 4096");
}

TEST_F(Certificates, AreRefusedWhenAnyBitIsChanged) {
  Bytes der = copy_of(identity_.certificate.der());
  int readable = 0;
  for (std::size_t bit = 0; bit < 8 * der.size(); ++bit) {
    const auto mask = static_cast<std::byte>(1u << bit % 8);
    der[bit / 8] ^= mask;
    if (const Result<Certificate> changed = Certificate::parse(der)) {
      ++readable;
      EXPECT_FALSE(check(*changed)) << "bit " << bit;
    }
    der[bit / 8] ^= mask;
  }
  EXPECT_GT(readable, 512) << "at least a changed signature can be read";
}

TEST_F(Certificates, OfAnAuthorityArePinnedBitByBit) {
  Bytes der = copy_of(identity_.authority.der());
  for (std::size_t bit = 0; bit < 8 * der.size(); ++bit) {
    const auto mask = static_cast<std::byte>(1u << bit % 8);
    der[bit / 8] ^= mask;
    const Result<Certificate> changed = Certificate::parse(der);
    if (changed) {
      EXPECT_FALSE(verify_authority(*changed, identity_.authority.public_fingerprint(), cluster_)) << "bit " << bit;
    }
    der[bit / 8] ^= mask;
  }
}

TEST_F(Certificates, AreIssuedForSensibleTimesOnly) {
  const CertificateRequest request = CertificateRequest::make(identity_.key).value();
  const Authority& authority = local_.authority();
  const auto refused = [&](sys_seconds now, std::chrono::seconds lifetime, std::chrono::seconds back_date) {
    const Result<Certificate> issued = authority.issue(request, node_, now, lifetime, back_date);
    return !issued && issued.error().code() == ErrorCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused(kNow, 0s, 0s));
  EXPECT_TRUE(refused(kNow, -1s, 0s));
  EXPECT_TRUE(refused(kNow, 1s, -1s));
  EXPECT_TRUE(refused(sys_seconds(-1s), 1h, 0s));
  EXPECT_TRUE(refused(kNow, std::chrono::seconds::max(), 0s));
  EXPECT_TRUE(refused(sys_seconds::max(), 1s, 0s));

  // A simulated clock may start at zero.
  const Certificate first = authority.issue(request, node_, sys_seconds(0s)).value();
  EXPECT_EQ(first.not_before(), sys_seconds(0s));
  EXPECT_EQ(sentence_of(check(first, sys_seconds(0s))), "accepted");
  const Certificate short_lived = authority.issue(request, node_, kNow, 1s, 0s).value();
  EXPECT_EQ(short_lived.not_before(), kNow);
  EXPECT_EQ(short_lived.not_after(), kNow + 1s);
}

// Certificates that are sound X.509 and still none of ours: self-signed by a key of that kind, with what `add` puts in.
Bytes strange_certificate(gnutls_pk_algorithm_t kind, unsigned bits, const std::function<void(gnutls_x509_crt_t)>& add) {
  gnutls_x509_privkey_t key = nullptr;
  gnutls_x509_crt_t certificate = nullptr;
  gnutls_datum_t der{nullptr, 0};
  EXPECT_EQ(gnutls_x509_privkey_init(&key), 0);
  EXPECT_EQ(gnutls_x509_privkey_generate(key, kind, bits, 0), 0);
  EXPECT_EQ(gnutls_x509_crt_init(&certificate), 0);
  gnutls_x509_crt_set_version(certificate, 3);
  gnutls_x509_crt_set_serial(certificate, "\1", 1);
  gnutls_x509_crt_set_activation_time(certificate, 0);
  gnutls_x509_crt_set_expiration_time(certificate, 4'000'000'000);
  gnutls_x509_crt_set_key(certificate, key);
  add(certificate);
  EXPECT_EQ(gnutls_x509_crt_sign2(certificate, certificate, key, kind == GNUTLS_PK_ECDSA ? GNUTLS_DIG_SHA256 : GNUTLS_DIG_SHA512, 0), 0);
  EXPECT_EQ(gnutls_x509_crt_export2(certificate, GNUTLS_X509_FMT_DER, &der), 0);
  Bytes result = copy_of({reinterpret_cast<const std::byte*>(der.data), der.size});
  gnutls_free(der.data);
  gnutls_x509_crt_deinit(certificate);
  gnutls_x509_privkey_deinit(key);
  return result;
}

void add_name(gnutls_x509_crt_t certificate, const char* oid, const std::string& text) {
  EXPECT_EQ(gnutls_x509_crt_set_dn_by_oid(certificate, oid, 0, text.data(), static_cast<unsigned>(text.size())), 0);
}

std::string why_refused(const Bytes& der) {
  const Result<Certificate> parsed = Certificate::parse(der);
  return parsed ? "accepted" : parsed.error().sentence();
}

TEST(Strangers, AreNotTakenForOurs) {
  constexpr unsigned kBits = GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_ED25519);
  const std::string id(32, 'a');
  const auto ed25519 = [&](auto add) { return why_refused(strange_certificate(GNUTLS_PK_EDDSA_ED25519, kBits, add)); };

  EXPECT_EQ(why_refused(strange_certificate(GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), [](auto) {})),
            "this certificate is not one of nexar's: its keys are not Ed25519");
  EXPECT_EQ(ed25519([](auto) {}), "this certificate is not one of nexar's: it names no cluster");
  EXPECT_EQ(ed25519([&](auto c) { add_name(c, GNUTLS_OID_X520_ORGANIZATION_NAME, id); }),
            "this certificate is not one of nexar's: it names no node");
  const auto named = [&](const std::string& organisation, const std::string& common_name) {
    return ed25519([&](auto c) {
      add_name(c, GNUTLS_OID_X520_ORGANIZATION_NAME, organisation);
      add_name(c, GNUTLS_OID_X520_COMMON_NAME, common_name);
    });
  };
  EXPECT_EQ(named(id, id), "accepted");
  EXPECT_EQ(named(id + "a", id), "this certificate is not one of nexar's: it names no cluster");
  EXPECT_EQ(named(std::string(64, 'a'), id), "this certificate is not one of nexar's: it names no cluster");
  EXPECT_EQ(named(id, std::string(32, 'A')), "this certificate is not one of nexar's: it names no node");
  EXPECT_EQ(named(id, std::string(31, 'a') + '\0'), "this certificate is not one of nexar's: it names no node");
  EXPECT_EQ(ed25519([&](auto c) {
              add_name(c, GNUTLS_OID_X520_ORGANIZATION_NAME, id);
              add_name(c, GNUTLS_OID_X520_COMMON_NAME, id);
              add_name(c, GNUTLS_OID_X520_ORGANIZATION_NAME, std::string(32, 'b'));
            }),
            "this certificate is not one of nexar's: it names no cluster")
      << "two names are none";
}

TEST(Ids, HaveOneSpelling) {
  const NodeId id{{std::byte{0x01}, std::byte{0xfe}}};
  const std::string text = to_string(id);
  EXPECT_EQ(text, "01fe0000000000000000000000000000");
  EXPECT_EQ(id_from_hex(text), id.bytes);
  EXPECT_EQ(id_from_hex("01FE0000000000000000000000000000"), std::nullopt);
  EXPECT_EQ(id_from_hex(text + "00"), std::nullopt);
  EXPECT_EQ(id_from_hex("0x" + text.substr(2)), std::nullopt);
  EXPECT_LT(node_id(1), node_id(2));
}

}  // namespace
}  // namespace nexar::crypto
