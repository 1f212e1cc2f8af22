// The back-end that is always there.
#include <array>
#include <cstring>
#include <mutex>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "base/assert.h"
#include "crypto/aead_cipher.h"
#include "crypto/gnutls_data.h"

namespace nexar::crypto {
namespace {

using Regions = std::array<giovec_t, kAeadRegionsMax>;

template <typename Span>
giovec_t to_region(Span bytes) {
  const gnutls_datum_t parts = datum(bytes);
  return {parts.data, bytes.size()};
}

// A GnuTLS handle carries the state of the record it works on, so one thread at a time may use it. The lock is free in the usual case of
// one thread for each key.
class GnuTlsCipher final : public AeadCipher {
 public:
  explicit GnuTlsCipher(base::ByteView key) {
    const gnutls_datum_t key_datum = datum(key);
    NEXAR_ASSERT(gnutls_aead_cipher_init(&handle_, GNUTLS_CIPHER_AES_128_GCM, &key_datum) == GNUTLS_E_SUCCESS, "GnuTLS has AES-128-GCM");
  }
  GnuTlsCipher(const GnuTlsCipher&) = delete;
  GnuTlsCipher& operator=(const GnuTlsCipher&) = delete;
  ~GnuTlsCipher() override { gnutls_aead_cipher_deinit(handle_); }

  void seal(base::ByteSpan out, std::span<const base::ByteView> plain, const Nonce& nonce, base::ByteView aad) const override {
    const int status = plain.size() == 1 ? seal_one(out, plain[0], nonce, aad) : seal_regions(out, plain, nonce, aad);
    NEXAR_ASSERT(status == GNUTLS_E_SUCCESS, "sealing fails for no content");
  }

  bool open(std::span<const base::ByteSpan> out, base::ByteView sealed, const Nonce& nonce, base::ByteView aad) const override {
    return (out.size() == 1 ? open_one(out[0], sealed, nonce, aad) : open_regions(out, sealed, nonce, aad)) == GNUTLS_E_SUCCESS;
  }

 private:
  int seal_one(base::ByteSpan out, base::ByteView plain, const Nonce& nonce, base::ByteView aad) const {
    std::size_t written = out.size();
    const std::lock_guard lock(mutex_);
    return gnutls_aead_cipher_encrypt(handle_, nonce.data(), nonce.size(), datum(aad).data, aad.size(), kAeadTagBytes, datum(plain).data,
                                      plain.size(), out.data(), &written);
  }

  int open_one(base::ByteSpan out, base::ByteView sealed, const Nonce& nonce, base::ByteView aad) const {
    std::size_t written = out.size();
    const std::lock_guard lock(mutex_);
    return gnutls_aead_cipher_decrypt(handle_, nonce.data(), nonce.size(), datum(aad).data, aad.size(), kAeadTagBytes, sealed.data(),
                                      sealed.size(), datum(out).data, &written);
  }

  // Regions are brought to where they shall be first and worked on there: GnuTLS scatters only in place, and gathering by a copy is no
  // slower.
  int seal_regions(base::ByteSpan out, std::span<const base::ByteView> plain, const Nonce& nonce, base::ByteView aad) const {
    std::size_t offset = 0;
    for (const base::ByteView region : plain) {
      if (!region.empty()) std::memcpy(out.data() + offset, region.data(), region.size());
      offset += region.size();
    }
    return seal_one(out, out.first(offset), nonce, aad);
  }

  int open_regions(std::span<const base::ByteSpan> out, base::ByteView sealed, const Nonce& nonce, base::ByteView aad) const {
    Regions regions;
    std::size_t count = 0;
    std::size_t offset = 0;
    for (const base::ByteSpan region : out) {
      if (region.empty()) continue;
      std::memcpy(region.data(), sealed.data() + offset, region.size());
      offset += region.size();
      regions[count++] = to_region(region);
    }
    const giovec_t aad_region = to_region(aad);
    std::array<std::byte, kAeadTagBytes> tag;
    std::memcpy(tag.data(), sealed.data() + offset, tag.size());
    const std::lock_guard lock(mutex_);
    return gnutls_aead_cipher_decryptv2(handle_, nonce.data(), nonce.size(), &aad_region, 1, regions.data(), static_cast<int>(count),
                                        tag.data(), tag.size());
  }

  mutable std::mutex mutex_;
  gnutls_aead_cipher_hd_t handle_ = nullptr;
};

}  // namespace

std::unique_ptr<const AeadCipher> make_gnutls_cipher(base::ByteView key) { return std::make_unique<GnuTlsCipher>(key); }

std::string gnutls_version() { return gnutls_check_version(nullptr); }

}  // namespace nexar::crypto
