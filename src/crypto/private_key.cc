#include "crypto/private_key.h"

#include <fmt/format.h>

#include "crypto/gnutls_data.h"
#include "crypto/x509_handles.h"

namespace nexar::crypto {
namespace {

// SHA-256 of the public half, by the function of GnuTLS for that kind of object.
template <auto kGetKeyId, typename Handle>
int read_fingerprint(const Handle& handle, Sha256& fingerprint) {
  std::size_t size = fingerprint.size();
  return kGetKeyId(handle.get(), GNUTLS_KEYID_USE_SHA256, reinterpret_cast<unsigned char*>(fingerprint.data()), &size);
}

Error too_large(ErrorCode code, const char* what, std::size_t size) {
  return {code, fmt::format("{} of {} bytes is larger than any of ours, which have at most {}", what, size, kDerBytesMax)};
}

}  // namespace

Result<PrivateKey> PrivateKey::generate() {
  const auto handle = make_handle<PrivateKeyHandle>(gnutls_x509_privkey_init);
  OwnedDatum der;
  Sha256 fingerprint;
  Calls call;
  call(gnutls_x509_privkey_generate(handle.get(), GNUTLS_PK_EDDSA_ED25519, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_ED25519), 0));
  if (call.ok()) call(gnutls_x509_privkey_export2_pkcs8(handle.get(), GNUTLS_X509_FMT_DER, nullptr, GNUTLS_PKCS_PLAIN, der.out()));
  if (call.ok()) call(read_fingerprint<gnutls_x509_privkey_get_key_id>(handle, fingerprint));
  if (!call.ok()) return gnutls_failure(ErrorCode::kIo, "a private key could not be made", call.first_failure());
  Secret copy(der.view());
  wipe(der.span());
  return PrivateKey(std::move(copy), fingerprint);
}

Result<PrivateKey> PrivateKey::parse(base::ByteView der) {
  if (der.size() > kDerBytesMax) return too_large(ErrorCode::kInvalidArgument, "a private key", der.size());
  const auto handle = make_handle<PrivateKeyHandle>(gnutls_x509_privkey_init);
  const gnutls_datum_t input = datum(der);
  Sha256 fingerprint;
  Calls call;
  call(gnutls_x509_privkey_import_pkcs8(handle.get(), &input, GNUTLS_X509_FMT_DER, nullptr, GNUTLS_PKCS_PLAIN));
  if (!call.ok()) return gnutls_failure(ErrorCode::kInvalidArgument, "this is no private key in PKCS#8", call.first_failure());
  if (gnutls_x509_privkey_get_pk_algorithm(handle.get()) != GNUTLS_PK_EDDSA_ED25519) {
    return Error(ErrorCode::kInvalidArgument, "this private key is not an Ed25519 key");
  }
  call(read_fingerprint<gnutls_x509_privkey_get_key_id>(handle, fingerprint));
  if (!call.ok()) return gnutls_failure(ErrorCode::kInvalidArgument, "this private key has no public half", call.first_failure());
  return PrivateKey(Secret(der), fingerprint);
}

Result<CertificateRequest> CertificateRequest::make(const PrivateKey& key) {
  const auto key_handle = make_handle<PrivateKeyHandle>(gnutls_x509_privkey_init);
  const auto request = make_handle<RequestHandle>(gnutls_x509_crq_init);
  const gnutls_datum_t key_der = datum(key.der().view());
  OwnedDatum der;
  Calls call;
  call(gnutls_x509_privkey_import_pkcs8(key_handle.get(), &key_der, GNUTLS_X509_FMT_DER, nullptr, GNUTLS_PKCS_PLAIN));
  call(gnutls_x509_crq_set_version(request.get(), 1));
  if (call.ok()) call(gnutls_x509_crq_set_key(request.get(), key_handle.get()));
  if (call.ok()) call(gnutls_x509_crq_sign2(request.get(), key_handle.get(), GNUTLS_DIG_SHA512, 0));
  if (call.ok()) call(gnutls_x509_crq_export2(request.get(), GNUTLS_X509_FMT_DER, der.out()));
  if (!call.ok()) return gnutls_failure(ErrorCode::kInternal, "a certificate request could not be made", call.first_failure());
  return CertificateRequest(to_vector(der.view()), key.public_fingerprint());
}

Result<CertificateRequest> CertificateRequest::parse(base::ByteView der) {
  if (der.size() > kDerBytesMax) return too_large(ErrorCode::kRefused, "a certificate request", der.size());
  const auto request = make_handle<RequestHandle>(gnutls_x509_crq_init);
  const gnutls_datum_t input = datum(der);
  Calls call;
  call(gnutls_x509_crq_import(request.get(), &input, GNUTLS_X509_FMT_DER));
  if (!call.ok()) return gnutls_failure(ErrorCode::kRefused, "this is no certificate request", call.first_failure());
  if (gnutls_x509_crq_get_pk_algorithm(request.get(), nullptr) != GNUTLS_PK_EDDSA_ED25519) {
    return Error(ErrorCode::kRefused, "this certificate request is not for an Ed25519 key");
  }
  call(gnutls_x509_crq_verify(request.get(), 0));
  if (!call.ok())
    return gnutls_failure(ErrorCode::kRefused, "the sender of this certificate request does not have its key", call.first_failure());
  Sha256 fingerprint;
  call(read_fingerprint<gnutls_x509_crq_get_key_id>(request, fingerprint));
  if (!call.ok()) return gnutls_failure(ErrorCode::kRefused, "this certificate request has no public key", call.first_failure());
  return CertificateRequest(to_vector(der), fingerprint);
}

}  // namespace nexar::crypto
