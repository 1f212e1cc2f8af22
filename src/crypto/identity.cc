#include "crypto/identity.h"

namespace nexar::crypto {

Result<LocalAuthority> LocalAuthority::make(const ClusterId& cluster) {
  Result<PrivateKey> key = PrivateKey::generate();
  if (!key) return std::move(key).error();
  Result<Authority> authority = Authority::make(*std::move(key), cluster);
  if (!authority) return std::move(authority).error();
  return LocalAuthority(*std::move(authority));
}

Result<Identity> LocalAuthority::make_node(const NodeId& node, std::chrono::sys_seconds now) const {
  Result<PrivateKey> key = PrivateKey::generate();
  if (!key) return std::move(key).error();
  Result<CertificateRequest> request = CertificateRequest::make(*key);
  if (!request) return std::move(request).error();
  Result<Certificate> certificate = authority_.issue(*request, node, now);
  if (!certificate) return std::move(certificate).error();
  return Identity{*std::move(key), *std::move(certificate), authority_.certificate()};
}

}  // namespace nexar::crypto
