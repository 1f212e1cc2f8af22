// SHA-256 and what is built on it: HMAC, HKDF, and the labelled expansion that TLS 1.3 and QUIC derive their keys with.
//
// All of these are for set-up: they may allocate. Nothing here is called per message.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "base/bytes.h"
#include "crypto/secret.h"

namespace nexar::crypto {

inline constexpr std::size_t kSha256Bytes = 32;
using Sha256 = std::array<std::byte, kSha256Bytes>;

Sha256 sha256(base::ByteView data);

// SHA-256 of what comes in pieces. finish() gives the digest of everything so far and starts again from nothing.
//
// Thread: any, one at a time.
class Sha256Stream {
 public:
  Sha256Stream();
  Sha256Stream(Sha256Stream&&) noexcept;
  Sha256Stream& operator=(Sha256Stream&&) noexcept;
  ~Sha256Stream();

  void update(base::ByteView data);
  Sha256 finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// HMAC-SHA-256 of the parts one after the other. Their borders are not part of it: parts of variable length need a length of their own.
Sha256 hmac_sha256(base::ByteView key, std::initializer_list<base::ByteView> parts);

// The most that HKDF gives from one key: 255 blocks (RFC 5869).
inline constexpr std::size_t kHkdfBytesMax = 255 * kSha256Bytes;

// A uniform key from input that has enough entropy but is not uniform. The salt may be empty.
Secret hkdf_extract(base::ByteView salt, base::ByteView input);

// `length` bytes, at most kHkdfBytesMax, from a uniform key; another `info` gives unrelated bytes.
Secret hkdf_expand(base::ByteView key, base::ByteView info, std::size_t length);

// What a label and a context may have: each is preceded by one byte of length, and the label by "tls13 ".
inline constexpr std::size_t kLabelBytesMax = 255 - 6;
inline constexpr std::size_t kLabelContextBytesMax = 255;

// HKDF-Expand-Label of RFC 8446, 7.1, as QUIC uses it: hkdf_expand_label(secret, "quic key", {}, 16). The label is given without "tls13 ".
Secret hkdf_expand_label(base::ByteView secret, std::string_view label, base::ByteView context, std::size_t length);

}  // namespace nexar::crypto
