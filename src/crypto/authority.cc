#include "crypto/authority.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <string>

#include <fmt/format.h>

#include "base/bytes.h"
#include "crypto/gnutls_data.h"
#include "crypto/x509_handles.h"

namespace nexar::crypto {
namespace {

using std::chrono::sys_seconds;

constexpr std::size_t kSerialBytes = 16;  // of the 20 that X.509 allows
constexpr std::size_t kKeyIdBytes = 20;   // the usual length: the start of the fingerprint names the key
constexpr std::time_t kStartOfTime = 0;   // an authority is valid as long as its key is kept; so its certificate needs no clock
constexpr sys_seconds kEndOfTime = std::chrono::sys_days(std::chrono::year(9999) / 12 / 31);  // what X.509 can write

PrivateKeyHandle import(const PrivateKey& key, Calls& call) {
  auto handle = make_handle<PrivateKeyHandle>(gnutls_x509_privkey_init);
  const gnutls_datum_t der = datum(key.der().view());
  call(gnutls_x509_privkey_import_pkcs8(handle.get(), &der, GNUTLS_X509_FMT_DER, nullptr, GNUTLS_PKCS_PLAIN));
  return handle;
}

// Positive, and another one for other keys, names or times, without a counter that must be kept.
std::array<std::byte, kSerialBytes> serial_number(const Sha256& key, const NodeId& node, std::time_t from, std::time_t until) {
  std::array<std::byte, 16> times;
  base::store_le<std::int64_t>(times.data(), from);
  base::store_le<std::int64_t>(times.data() + 8, until);
  const Sha256 digest = hmac_sha256(key, {node.bytes, times});
  std::array<std::byte, kSerialBytes> serial;
  std::copy_n(digest.begin(), serial.size(), serial.begin());
  serial[0] = (serial[0] & std::byte{0x3f}) | std::byte{0x40};
  return serial;
}

// What both kinds of certificate have.
void fill(gnutls_x509_crt_t certificate, Calls& call, const ClusterId& cluster, const NodeId& node, const std::string& common_name,
          const Sha256& key, std::time_t from, std::time_t until) {
  const std::string organisation = to_string(cluster);
  const auto serial = serial_number(key, node, from, until);
  call(gnutls_x509_crt_set_version(certificate, 3));
  call(gnutls_x509_crt_set_serial(certificate, serial.data(), serial.size()));
  call(gnutls_x509_crt_set_activation_time(certificate, from));
  call(gnutls_x509_crt_set_expiration_time(certificate, until));
  call(gnutls_x509_crt_set_dn_by_oid(certificate, GNUTLS_OID_X520_ORGANIZATION_NAME, 0, organisation.data(),
                                     static_cast<unsigned>(organisation.size())));
  call(gnutls_x509_crt_set_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, common_name.data(),
                                     static_cast<unsigned>(common_name.size())));
  call(gnutls_x509_crt_set_subject_key_id(certificate, key.data(), kKeyIdBytes));
}

// The bytes of the signed certificate, read back by the same code that reads those of strangers.
Result<Certificate> sign(gnutls_x509_crt_t certificate, gnutls_x509_crt_t issuer, gnutls_x509_privkey_t key, Calls& call) {
  OwnedDatum der;
  if (call.ok()) call(gnutls_x509_crt_sign2(certificate, issuer, key, GNUTLS_DIG_SHA512, 0));
  if (call.ok()) call(gnutls_x509_crt_export2(certificate, GNUTLS_X509_FMT_DER, der.out()));
  if (!call.ok()) return gnutls_failure(ErrorCode::kInternal, "a certificate could not be made", call.first_failure());
  return Certificate::parse(der.view());
}

Result<void> check_times(sys_seconds now, std::chrono::seconds lifetime, std::chrono::seconds back_date) {
  if (lifetime.count() <= 0 || back_date.count() < 0) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("a certificate cannot be valid for {} s from {} s ago", lifetime.count(), back_date.count()));
  }
  if (now.time_since_epoch().count() < kStartOfTime || now > kEndOfTime || lifetime > kEndOfTime - now) {
    return Error(ErrorCode::kInvalidArgument, "a certificate must begin after 1970 and end before the year 10000: is the clock right?");
  }
  return {};
}

}  // namespace

Result<Authority> Authority::make(PrivateKey key, const ClusterId& cluster) {
  const auto certificate = make_handle<CertificateHandle>(gnutls_x509_crt_init);
  Calls call;
  const PrivateKeyHandle key_handle = import(key, call);
  fill(certificate.get(), call, cluster, NodeId{}, "nexar authority", key.public_fingerprint(), kStartOfTime,
       kEndOfTime.time_since_epoch().count());
  call(gnutls_x509_crt_set_key(certificate.get(), key_handle.get()));
  call(gnutls_x509_crt_set_basic_constraints(certificate.get(), 1, 0));
  // A seed speaks TLS with this key, hence the digital signature.
  call(gnutls_x509_crt_set_key_usage(certificate.get(), GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_DIGITAL_SIGNATURE));
  Result<Certificate> signed_certificate = sign(certificate.get(), certificate.get(), key_handle.get(), call);
  if (!signed_certificate) return std::move(signed_certificate).error();
  return Authority(std::move(key), *std::move(signed_certificate));
}

Result<Certificate> Authority::issue(const CertificateRequest& request, const NodeId& node, sys_seconds now, std::chrono::seconds lifetime,
                                     std::chrono::seconds back_date) const {
  if (Result<void> times = check_times(now, lifetime, back_date); !times) return std::move(times).error();
  const std::time_t moment = now.time_since_epoch().count();
  const std::time_t from = moment > back_date.count() ? moment - back_date.count() : kStartOfTime;

  const auto certificate = make_handle<CertificateHandle>(gnutls_x509_crt_init);
  const auto issuer = make_handle<CertificateHandle>(gnutls_x509_crt_init);
  const auto request_handle = make_handle<RequestHandle>(gnutls_x509_crq_init);
  const auto public_key = make_handle<PublicKeyHandle>(gnutls_pubkey_init);
  const gnutls_datum_t issuer_der = datum(certificate_.der());
  const gnutls_datum_t request_der = datum(request.der());
  const std::string dns_name = host_name(node);

  Calls call;
  const PrivateKeyHandle key_handle = import(key_, call);
  call(gnutls_x509_crt_import(issuer.get(), &issuer_der, GNUTLS_X509_FMT_DER));
  call(gnutls_x509_crq_import(request_handle.get(), &request_der, GNUTLS_X509_FMT_DER));
  if (call.ok()) call(gnutls_pubkey_import_x509_crq(public_key.get(), request_handle.get(), 0));
  if (call.ok()) call(gnutls_x509_crt_set_pubkey(certificate.get(), public_key.get()));
  fill(certificate.get(), call, certificate_.cluster(), node, to_string(node), request.public_fingerprint(), from,
       moment + lifetime.count());
  call(gnutls_x509_crt_set_authority_key_id(certificate.get(), key_.public_fingerprint().data(), kKeyIdBytes));
  call(gnutls_x509_crt_set_basic_constraints(certificate.get(), 0, -1));
  call(gnutls_x509_crt_set_key_usage(certificate.get(), GNUTLS_KEY_DIGITAL_SIGNATURE));
  call(gnutls_x509_crt_set_key_purpose_oid(certificate.get(), GNUTLS_KP_TLS_WWW_SERVER, 0));
  call(gnutls_x509_crt_set_key_purpose_oid(certificate.get(), GNUTLS_KP_TLS_WWW_CLIENT, 0));
  call(gnutls_x509_crt_set_subject_alt_name(certificate.get(), GNUTLS_SAN_DNSNAME, dns_name.data(), static_cast<unsigned>(dns_name.size()),
                                            GNUTLS_FSAN_SET));
  return sign(certificate.get(), issuer.get(), key_handle.get(), call);
}

}  // namespace nexar::crypto
