// What a seed file holds, and its text.
//
//   nexar seed file 1
//   cluster: 32 hexadecimal digits
//   key: the authority's private key, PKCS#8 in hexadecimal digits
//   secret: 64 hexadecimal digits
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cluster/token.h"
#include "crypto/private_key.h"
#include "crypto/secret.h"
#include "nexar/result.h"
#include "nexar/seed.h"
#include "types/node_id.h"

namespace nexar {

struct SeedCredentials::Content {
  ClusterId cluster;
  crypto::PrivateKey key;
  crypto::Secret secret;

  cluster::Token token() const { return {cluster, key.public_fingerprint(), crypto::Secret(secret.view())}; }
};

}  // namespace nexar

namespace nexar::cluster {

// Ours have less than 300; a token file has less still.
inline constexpr std::size_t kSecretFileBytesMax = 4096;

std::string format_seed_file(const SeedCredentials::Content& content);

// kInvalidArgument says what is wrong, by line, and shows nothing of it.
Result<SeedCredentials::Content> parse_seed_file(std::string_view text);

}  // namespace nexar::cluster
