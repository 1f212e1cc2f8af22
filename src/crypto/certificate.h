// X.509 certificates as nexar writes them: the names of a cluster and, unless it is the authority's, of one of its nodes, bound to an
// Ed25519 key.
//
//   subject           O = cluster id in hex, CN = node id in hex ("nexar authority" for the authority)
//   alternative name  dNSName, for libraries that check one (host_name below)
//   key usage         digital signature; for TLS as client and server. The authority: also signing certificates
//
// Where they come from: crypto/authority.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "crypto/hash.h"
#include "nexar/result.h"
#include "types/node_id.h"

namespace nexar::crypto {

// A certificate that has been read, which says nothing about whether it is true: that is what verify() is for.
class Certificate {
 public:
  // Refuses what is no certificate, is not one of nexar's, or is larger than kDerBytesMax. The bytes may come from anybody.
  static Result<Certificate> parse(base::ByteView der);

  base::ByteView der() const { return der_; }
  bool is_authority() const { return is_authority_; }
  const NodeId& node() const { return node_; }  // zeros in an authority's certificate
  const ClusterId& cluster() const { return cluster_; }
  std::chrono::sys_seconds not_before() const { return not_before_; }
  std::chrono::sys_seconds not_after() const { return not_after_; }

  // SHA-256 of the public key (SubjectPublicKeyInfo in DER).
  const Sha256& public_fingerprint() const { return fingerprint_; }

 private:
  Certificate() = default;

  std::vector<std::byte> der_;
  bool is_authority_ = false;
  NodeId node_;
  ClusterId cluster_;
  std::chrono::sys_seconds not_before_;
  std::chrono::sys_seconds not_after_;
  Sha256 fingerprint_{};
};

// The dNSName of a node's certificate.
std::string host_name(const NodeId& node);

// Whether `leaf` is a node's certificate, of `cluster`, issued by `authority`, and valid at `now`. Each way to fail has a sentence of its
// own. That `authority` itself is the right one is the caller's knowledge: it was pinned with verify_authority() when the node joined.
Result<void> verify(const Certificate& leaf, const Certificate& authority, const ClusterId& cluster, std::chrono::sys_seconds now);

// Whether `authority` is the certificate of the authority of `cluster` whose key has that fingerprint, which is what a join token names.
Result<void> verify_authority(const Certificate& authority, const Sha256& fingerprint, const ClusterId& cluster);

}  // namespace nexar::crypto
