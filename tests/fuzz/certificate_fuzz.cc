// Bytes of strangers, read as certificate, request and private key. Whatever they are, reading them ends, and nothing that this process did
// not issue is accepted.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/bytes.h"
#include "crypto/identity.h"

namespace nexar::crypto {
namespace {

constexpr std::chrono::sys_seconds kNow = std::chrono::sys_days(std::chrono::year(2026) / 11 / 15);

void read_as_certificate(base::ByteView bytes) {
  static const LocalAuthority authority = LocalAuthority::make(ClusterId{}).value();
  const Result<Certificate> certificate = Certificate::parse(bytes);
  if (!certificate) return;
  // A cluster id that is the certificate's own lets it reach the signature.
  const Authority other =
      Authority::make(PrivateKey::parse(authority.authority().key().der().view()).value(), certificate->cluster()).value();
  if (verify(*certificate, other.certificate(), certificate->cluster(), kNow)) std::abort();
  (void)verify_authority(*certificate, certificate->public_fingerprint(), certificate->cluster());
}

void read_as_request(base::ByteView bytes) {
  static const LocalAuthority authority = LocalAuthority::make(ClusterId{}).value();
  const Result<CertificateRequest> request = CertificateRequest::parse(bytes);
  if (!request) return;
  const Certificate issued = authority.authority().issue(*request, NodeId{}, kNow).value();
  if (issued.public_fingerprint() != request->public_fingerprint()) std::abort();
}

void read_as_key(base::ByteView bytes) {
  const Result<PrivateKey> key = PrivateKey::parse(bytes);
  if (key && CertificateRequest::make(*key).value().public_fingerprint() != key->public_fingerprint()) std::abort();
}

}  // namespace
}  // namespace nexar::crypto

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  nexar::crypto::read_as_certificate(bytes);
  nexar::crypto::read_as_request(bytes);
  nexar::crypto::read_as_key(bytes);
  return 0;
}
