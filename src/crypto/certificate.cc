#include "crypto/certificate.h"

#include <array>
#include <ctime>
#include <optional>

#include <fmt/format.h>

#include "crypto/gnutls_data.h"
#include "crypto/private_key.h"
#include "crypto/secret.h"
#include "crypto/x509_handles.h"

namespace nexar::crypto {
namespace {

using std::chrono::sys_seconds;

constexpr std::size_t kNameBytesMax = 64;  // of one part of a subject, as X.520 has it for both that we read

Error refuse(std::string sentence) { return {ErrorCode::kRefused, std::move(sentence)}; }

CertificateHandle import(base::ByteView der, Calls& call) {
  auto handle = make_handle<CertificateHandle>(gnutls_x509_crt_init);
  const gnutls_datum_t input = datum(der);
  call(gnutls_x509_crt_import(handle.get(), &input, GNUTLS_X509_FMT_DER));
  return handle;
}

// The part of the subject with that name; nothing when it is missing, too long, or there twice.
std::optional<std::string> subject_part(gnutls_x509_crt_t certificate, const char* oid) {
  std::array<char, kNameBytesMax + 1> text;
  std::size_t size = text.size();
  if (gnutls_x509_crt_get_dn_by_oid(certificate, oid, 0, 0, text.data(), &size) < 0) return std::nullopt;
  std::size_t none = 0;
  if (gnutls_x509_crt_get_dn_by_oid(certificate, oid, 1, 0, nullptr, &none) != GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE) return std::nullopt;
  return std::string(text.data(), size);
}

template <typename Id>
std::optional<Id> subject_id(gnutls_x509_crt_t certificate, const char* oid) {
  const std::optional<std::string> text = subject_part(certificate, oid);
  const auto bytes = text ? id_from_hex(*text) : std::nullopt;
  if (!bytes) return std::nullopt;
  return Id{*bytes};
}

// Whether the certificate says that it may sign others; nothing when it says so in a form that cannot be read.
std::optional<bool> authority_bit(gnutls_x509_crt_t certificate) {
  unsigned critical = 0;
  unsigned bit = 0;
  int path_length = 0;
  const int status = gnutls_x509_crt_get_basic_constraints(certificate, &critical, &bit, &path_length);
  if (status == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE) return false;
  if (status < 0) return std::nullopt;
  return bit != 0;
}

// 2026-11-15T12:00:00Z
std::string to_text(sys_seconds time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()), clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

// Whether the key of `authority` signed `certificate`. Times are not looked at: `now` comes from the caller.
Result<void> verify_signature(const Certificate& certificate, const Certificate& authority, const std::string& who) {
  Calls call;
  const CertificateHandle subject = import(certificate.der(), call);
  const CertificateHandle issuer = import(authority.der(), call);
  if (!call.ok()) return gnutls_failure(ErrorCode::kRefused, "the certificate of " + who + " cannot be read", call.first_failure());
  if (gnutls_x509_crt_check_issuer(subject.get(), issuer.get()) == 0) {
    return refuse(fmt::format("the certificate of {} was issued by another authority", who));
  }
  // Without the last flag a certificate that is its own issuer would be believed unread.
  constexpr unsigned kFlags =
      GNUTLS_VERIFY_DISABLE_TIME_CHECKS | GNUTLS_VERIFY_DISABLE_TRUSTED_TIME_CHECKS | GNUTLS_VERIFY_DO_NOT_ALLOW_SAME;
  unsigned problems = 0;
  gnutls_x509_crt_t issuers[] = {issuer.get()};
  call(gnutls_x509_crt_verify(subject.get(), issuers, 1, kFlags, &problems));
  if (!call.ok()) return gnutls_failure(ErrorCode::kRefused, "the certificate of " + who + " cannot be verified", call.first_failure());
  if ((problems & GNUTLS_CERT_SIGNATURE_FAILURE) != 0) return refuse(fmt::format("the certificate of {} has a bad signature", who));
  if (problems != 0) return refuse(fmt::format("the certificate of {} does not hold (GnuTLS status {:#x})", who, problems));
  return {};
}

}  // namespace

Result<Certificate> Certificate::parse(base::ByteView der) {
  if (der.size() > kDerBytesMax) {
    return refuse(fmt::format("a certificate of {} bytes is larger than any of ours, which have at most {}", der.size(), kDerBytesMax));
  }
  Calls call;
  const CertificateHandle handle = import(der, call);
  if (!call.ok()) return gnutls_failure(ErrorCode::kRefused, "this is no certificate", call.first_failure());
  if (gnutls_x509_crt_get_pk_algorithm(handle.get(), nullptr) != GNUTLS_PK_EDDSA_ED25519 ||
      gnutls_x509_crt_get_signature_algorithm(handle.get()) != GNUTLS_SIGN_EDDSA_ED25519) {
    return refuse("this certificate is not one of nexar's: its keys are not Ed25519");
  }

  const std::optional<bool> is_authority = authority_bit(handle.get());
  if (!is_authority) return refuse("this certificate is not one of nexar's: whether it may sign others cannot be read");
  const auto cluster = subject_id<ClusterId>(handle.get(), GNUTLS_OID_X520_ORGANIZATION_NAME);
  if (!cluster) return refuse("this certificate is not one of nexar's: it names no cluster");
  const auto node = *is_authority ? NodeId{} : subject_id<NodeId>(handle.get(), GNUTLS_OID_X520_COMMON_NAME);
  if (!node) return refuse("this certificate is not one of nexar's: it names no node");
  const std::time_t from = gnutls_x509_crt_get_activation_time(handle.get());
  const std::time_t until = gnutls_x509_crt_get_expiration_time(handle.get());
  if (from < 0 || until < 0) return refuse("this certificate is not one of nexar's: the time of its validity cannot be read");

  Certificate result;
  std::size_t size = result.fingerprint_.size();
  call(gnutls_x509_crt_get_key_id(handle.get(), GNUTLS_KEYID_USE_SHA256, reinterpret_cast<unsigned char*>(result.fingerprint_.data()),
                                  &size));
  if (!call.ok()) return gnutls_failure(ErrorCode::kRefused, "this certificate has no public key", call.first_failure());
  result.der_ = to_vector(der);
  result.is_authority_ = *is_authority;
  result.node_ = *node;
  result.cluster_ = *cluster;
  result.not_before_ = sys_seconds(std::chrono::seconds(from));
  result.not_after_ = sys_seconds(std::chrono::seconds(until));
  return result;
}

std::string host_name(const NodeId& node) { return to_string(node) + ".nexar.internal"; }

Result<void> verify(const Certificate& leaf, const Certificate& authority, const ClusterId& cluster, sys_seconds now) {
  if (leaf.is_authority()) return refuse("an authority's certificate was shown where a node's is needed");
  const std::string who = "node " + to_string(leaf.node());
  if (leaf.cluster() != cluster) {
    return refuse(fmt::format("{} is of cluster {}, not of {}", who, to_string(leaf.cluster()), to_string(cluster)));
  }
  if (!authority.is_authority()) return refuse(fmt::format("{} was vouched for by a certificate that may not sign others", who));
  if (authority.cluster() != cluster) {
    return refuse(fmt::format("{} was vouched for by the authority of cluster {}, not of {}", who, to_string(authority.cluster()),
                              to_string(cluster)));
  }
  if (Result<void> signature = verify_signature(leaf, authority, who); !signature) return signature;
  if (now < leaf.not_before()) {
    return refuse(fmt::format("the certificate of {} is not valid before {}, and the clock here says {}", who, to_text(leaf.not_before()),
                              to_text(now)));
  }
  if (now > leaf.not_after()) {
    return refuse(
        fmt::format("the certificate of {} expired at {}, and the clock here says {}", who, to_text(leaf.not_after()), to_text(now)));
  }
  return {};
}

Result<void> verify_authority(const Certificate& authority, const Sha256& fingerprint, const ClusterId& cluster) {
  if (!authority.is_authority()) return refuse("a certificate that may not sign others was shown where an authority's is needed");
  if (authority.public_fingerprint() != fingerprint) {
    return refuse(
        fmt::format("the authority has key {}, and the token names {}", to_hex(authority.public_fingerprint()), to_hex(fingerprint)));
  }
  if (authority.cluster() != cluster) {
    return refuse(fmt::format("the authority is of cluster {}, not of {}", to_string(authority.cluster()), to_string(cluster)));
  }
  return verify_signature(authority, authority, "the authority");
}

}  // namespace nexar::crypto
