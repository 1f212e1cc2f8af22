// Who says which key is which node.
#pragma once

#include <chrono>
#include <utility>

#include "crypto/certificate.h"
#include "crypto/private_key.h"
#include "nexar/result.h"
#include "types/node_id.h"

namespace nexar::crypto {

// Long enough for a training run, short enough that a node left behind does not come back for ever. Running links outlive it.
inline constexpr std::chrono::seconds kCertificateLifetime = std::chrono::days(30);

// How far clocks of a cluster may disagree: a certificate is good at once on a host whose clock is behind.
inline constexpr std::chrono::seconds kCertificateBackDate = std::chrono::minutes(10);

// The authority of one cluster. It lives where the seed does.
//
// Everything it makes follows from its key and the arguments: a seed that is started again from its file shows the same certificate, and a
// request that is repeated with the same times gets the same answer.
//
// Thread: any, several at once.
class Authority {
 public:
  static Result<Authority> make(PrivateKey key, const ClusterId& cluster);

  const Certificate& certificate() const { return certificate_; }
  const PrivateKey& key() const { return key_; }

  // A certificate that says: the key of `request` is node `node`. The request was checked when it was parsed; that its sender may join is
  // what the caller has checked. Valid from `now` less `back_date` until `now` plus `lifetime`.
  Result<Certificate> issue(const CertificateRequest& request, const NodeId& node, std::chrono::sys_seconds now,
                            std::chrono::seconds lifetime = kCertificateLifetime,
                            std::chrono::seconds back_date = kCertificateBackDate) const;

 private:
  Authority(PrivateKey key, Certificate certificate) : key_(std::move(key)), certificate_(std::move(certificate)) {}

  PrivateKey key_;
  Certificate certificate_;
};

}  // namespace nexar::crypto
