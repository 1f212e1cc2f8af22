// What a back-end of AeadKey does. Its callers have checked every length.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "crypto/aead.h"

namespace nexar::crypto {

// Thread: any, several at once. Owned by its AeadKey.
class AeadCipher {
 public:
  AeadCipher() = default;
  AeadCipher(const AeadCipher&) = delete;
  AeadCipher& operator=(const AeadCipher&) = delete;
  virtual ~AeadCipher() = default;

  virtual void seal(base::ByteSpan out, std::span<const base::ByteView> plain, const Nonce& nonce, base::ByteView aad) const = 0;

  // What is in `out` after a false does not matter: AeadKey wipes it.
  virtual bool open(std::span<const base::ByteSpan> out, base::ByteView sealed, const Nonce& nonce, base::ByteView aad) const = 0;
};

std::unique_ptr<const AeadCipher> make_gnutls_cipher(base::ByteView key);
std::string gnutls_version();

// Null where the library or what it needs of the CPU is missing.
std::unique_ptr<const AeadCipher> make_ipsec_mb_cipher(base::ByteView key);
bool ipsec_mb_is_available();

}  // namespace nexar::crypto
