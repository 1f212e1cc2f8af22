// The join token: what a node must know to join a cluster.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "crypto/hash.h"
#include "crypto/secret.h"
#include "nexar/result.h"
#include "types/node_id.h"

namespace nexar::cluster {

inline constexpr std::size_t kSecretBytes = 32;

// `nxr1-` and 128 letters and digits: the base32 of cluster id, fingerprint and secret, 80 bytes.
inline constexpr std::string_view kTokenPrefix = "nxr1-";
inline constexpr std::size_t kTokenBytes = kIdBytes + crypto::kSha256Bytes + kSecretBytes;
inline constexpr std::size_t kTokenLetters = kTokenBytes * 8 / 5;

// Move-only; its secret is wiped when it goes.
struct Token {
  ClusterId cluster;
  crypto::Sha256 authority{};  // the fingerprint of the authority's public key
  crypto::Secret secret;       // kSecretBytes

  // kInvalidArgument says what is wrong with the text, and shows none of it.
  static Result<Token> parse(std::string_view text);

  // A secret: whoever has it may join.
  std::string to_string() const;

  // A second token with the same content.
  Token copy() const { return {cluster, authority, crypto::Secret(secret.view())}; }
};

}  // namespace nexar::cluster
