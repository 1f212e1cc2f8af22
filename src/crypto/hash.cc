#include "crypto/hash.h"

#include <algorithm>
#include <vector>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "base/assert.h"
#include "crypto/gnutls_data.h"

namespace nexar::crypto {
namespace {

// GnuTLS refuses these calls only for an algorithm it does not have or for want of memory, never for what the bytes are.
void must(int status) { NEXAR_ASSERT(status == GNUTLS_E_SUCCESS, "GnuTLS has SHA-256, HMAC and HKDF"); }

}  // namespace

Sha256 sha256(base::ByteView data) {
  Sha256 digest;
  must(gnutls_hash_fast(GNUTLS_DIG_SHA256, data.data(), data.size(), digest.data()));
  return digest;
}

struct Sha256Stream::State {
  State() { must(gnutls_hash_init(&handle, GNUTLS_DIG_SHA256)); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { gnutls_hash_deinit(handle, nullptr); }

  gnutls_hash_hd_t handle = nullptr;
};

Sha256Stream::Sha256Stream() : state_(std::make_unique<State>()) {}
Sha256Stream::Sha256Stream(Sha256Stream&&) noexcept = default;
Sha256Stream& Sha256Stream::operator=(Sha256Stream&&) noexcept = default;
Sha256Stream::~Sha256Stream() = default;

void Sha256Stream::update(base::ByteView data) {
  if (!data.empty()) must(gnutls_hash(state_->handle, data.data(), data.size()));
}

Sha256 Sha256Stream::finish() {
  Sha256 digest;
  gnutls_hash_output(state_->handle, digest.data());
  return digest;
}

Sha256 hmac_sha256(base::ByteView key, std::initializer_list<base::ByteView> parts) {
  gnutls_hmac_hd_t handle = nullptr;
  must(gnutls_hmac_init(&handle, GNUTLS_MAC_SHA256, key.data(), key.size()));
  for (const base::ByteView part : parts) {
    if (!part.empty()) must(gnutls_hmac(handle, part.data(), part.size()));
  }
  Sha256 mac;
  gnutls_hmac_deinit(handle, mac.data());
  return mac;
}

Secret hkdf_extract(base::ByteView salt, base::ByteView input) {
  Secret key(kSha256Bytes);
  const gnutls_datum_t input_datum = datum(input);
  const gnutls_datum_t salt_datum = datum(salt);
  must(gnutls_hkdf_extract(GNUTLS_MAC_SHA256, &input_datum, &salt_datum, key.span().data()));
  return key;
}

Secret hkdf_expand(base::ByteView key, base::ByteView info, std::size_t length) {
  NEXAR_ASSERT(length <= kHkdfBytesMax, "HKDF gives at most 255 blocks");
  Secret out(length);
  if (length == 0) return out;
  const gnutls_datum_t key_datum = datum(key);
  const gnutls_datum_t info_datum = datum(info);
  must(gnutls_hkdf_expand(GNUTLS_MAC_SHA256, &key_datum, &info_datum, out.span().data(), length));
  return out;
}

//   HkdfLabel:  length (2, big-endian) | size (1) "tls13 " label | size (1) context
Secret hkdf_expand_label(base::ByteView secret, std::string_view label, base::ByteView context, std::size_t length) {
  constexpr std::string_view kPrefix = "tls13 ";
  NEXAR_ASSERT(label.size() <= kLabelBytesMax, "a label has one byte for its length");
  NEXAR_ASSERT(context.size() <= kLabelContextBytesMax, "a context has one byte for its length");
  NEXAR_ASSERT(length <= kHkdfBytesMax, "HKDF gives at most 255 blocks");

  std::vector<std::byte> info;
  info.reserve(4 + kPrefix.size() + label.size() + context.size());
  const auto put_number = [&info](std::size_t number) { info.push_back(static_cast<std::byte>(number)); };
  const auto put_bytes = [&info](base::ByteView bytes) { info.insert(info.end(), bytes.begin(), bytes.end()); };
  put_number(length >> 8);
  put_number(length & 0xff);
  put_number(kPrefix.size() + label.size());
  put_bytes(std::as_bytes(std::span(kPrefix)));
  put_bytes(std::as_bytes(std::span(label)));
  put_number(context.size());
  put_bytes(context);
  return hkdf_expand(secret, info, length);
}

}  // namespace nexar::crypto
