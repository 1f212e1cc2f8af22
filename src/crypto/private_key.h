// Ed25519 keys, and the request by which a node asks for a certificate. A private key never travels; the request does.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "crypto/hash.h"
#include "crypto/secret.h"
#include "nexar/result.h"

namespace nexar::crypto {

// Whatever we read in DER: a certificate or request of ours has some 500 bytes, a key 48. Larger ones are refused unread, because they come
// from strangers.
inline constexpr std::size_t kDerBytesMax = 4096;

// A private Ed25519 key as PKCS#8. It is wiped when it goes.
class PrivateKey {
 public:
  // A new key from the randomness of GnuTLS.
  static Result<PrivateKey> generate();

  // From DER as der() gives it; refuses everything but Ed25519.
  static Result<PrivateKey> parse(base::ByteView der);

  const Secret& der() const { return der_; }

  // SHA-256 of the public half (SubjectPublicKeyInfo in DER): the same as that of every certificate and request made with this key.
  const Sha256& public_fingerprint() const { return fingerprint_; }

 private:
  PrivateKey(Secret der, const Sha256& fingerprint) : der_(std::move(der)), fingerprint_(fingerprint) {}

  Secret der_;
  Sha256 fingerprint_;
};

// A request for a certificate (PKCS#10): a public key, and the proof that the sender has its private half. Names in it are ignored: the
// authority decides what a node is called.
class CertificateRequest {
 public:
  static Result<CertificateRequest> make(const PrivateKey& key);

  // Refuses what is no request, has another kind of key, or was not signed by the key it names.
  static Result<CertificateRequest> parse(base::ByteView der);

  base::ByteView der() const { return der_; }
  const Sha256& public_fingerprint() const { return fingerprint_; }

 private:
  CertificateRequest(std::vector<std::byte> der, const Sha256& fingerprint) : der_(std::move(der)), fingerprint_(fingerprint) {}

  std::vector<std::byte> der_;
  Sha256 fingerprint_;
};

}  // namespace nexar::crypto
