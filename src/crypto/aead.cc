#include "crypto/aead.h"

#include "base/assert.h"
#include "crypto/aead_cipher.h"
#include "crypto/secret.h"

namespace nexar::crypto {
namespace {

template <typename Region>
std::size_t total_size(std::span<const Region> regions) {
  std::size_t total = 0;
  for (const Region& region : regions) total += region.size();
  return total;
}

std::unique_ptr<const AeadCipher> make_cipher(base::ByteView key, Backend backend) {
  NEXAR_ASSERT(key.size() == kAeadKeyBytes, "AES-128 has a key of 16 bytes");
  NEXAR_ASSERT(is_available(backend), "a back-end is asked for only where it is available");
  return backend == Backend::kIpsecMb ? make_ipsec_mb_cipher(key) : make_gnutls_cipher(key);
}

}  // namespace

std::string_view to_string(Backend backend) { return backend == Backend::kIpsecMb ? "ipsec-mb" : "GnuTLS"; }

bool is_available(Backend backend) { return backend == Backend::kGnuTls || ipsec_mb_is_available(); }

Backend aead_backend() { return ipsec_mb_is_available() ? Backend::kIpsecMb : Backend::kGnuTls; }

std::string aead_description() {
  const Backend backend = aead_backend();
  const std::string by = std::string("AES-128-GCM by ") + std::string(to_string(backend));
  return by + (backend == Backend::kIpsecMb ? " (AVX-512)" : " " + gnutls_version());
}

AeadKey::AeadKey(base::ByteView key, Backend backend) : cipher_(make_cipher(key, backend)) {}
AeadKey::AeadKey(AeadKey&&) noexcept = default;
AeadKey& AeadKey::operator=(AeadKey&&) noexcept = default;
AeadKey::~AeadKey() = default;

void AeadKey::seal(base::ByteSpan out, base::ByteView plain, const Nonce& nonce, base::ByteView aad) const {
  seal(out, std::span(&plain, 1), nonce, aad);
}

void AeadKey::seal(base::ByteSpan out, std::span<const base::ByteView> plain, const Nonce& nonce, base::ByteView aad) const {
  NEXAR_ASSERT(plain.size() <= kAeadRegionsMax, "a record is gathered from a few regions");
  NEXAR_ASSERT(out.size() == total_size(plain) + kAeadTagBytes, "a sealed record is longer than its plain text by the tag");
  cipher_->seal(out, plain, nonce, aad);
}

bool AeadKey::open(base::ByteSpan out, base::ByteView sealed, const Nonce& nonce, base::ByteView aad) const {
  return open(std::span(&out, 1), sealed, nonce, aad);
}

bool AeadKey::open(std::span<const base::ByteSpan> out, base::ByteView sealed, const Nonce& nonce, base::ByteView aad) const {
  NEXAR_ASSERT(out.size() <= kAeadRegionsMax, "a record is scattered to a few regions");
  bool intact = sealed.size() >= kAeadTagBytes;
  if (intact) {
    NEXAR_ASSERT(total_size(out) + kAeadTagBytes == sealed.size(), "a plain text is shorter than its sealed record by the tag");
    intact = cipher_->open(out, sealed, nonce, aad);
  }
  if (!intact) {
    for (const base::ByteSpan region : out) wipe(region);
  }
  return intact;
}

}  // namespace nexar::crypto
