#include "transport/quic/packet_keys.h"

#include <array>
#include <cstring>
#include <memory>

#include "crypto/aead.h"
#include "crypto/hash.h"
#include "crypto/header_mask.h"

namespace nexar::transport::quic {
namespace {

constexpr std::size_t kKeyBytes = 16;  // AES-128
constexpr std::size_t kIvBytes = 12;

base::ByteView view(const std::uint8_t* data, std::size_t size) { return {reinterpret_cast<const std::byte*>(data), size}; }
base::ByteSpan span(std::uint8_t* data, std::size_t size) { return {reinterpret_cast<std::byte*>(data), size}; }

crypto::Nonce nonce_of(const std::uint8_t* data) {
  crypto::Nonce nonce;
  std::memcpy(nonce.data(), data, nonce.size());
  return nonce;
}

template <typename T>
void* tagged(std::unique_ptr<T> key) {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(key.release()) | 1);
}

bool is_ours(const void* handle) { return (reinterpret_cast<std::uintptr_t>(handle) & 1) != 0; }

template <typename T>
T* untagged(void* handle) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(handle) & ~std::uintptr_t{1});
}

int encrypt(std::uint8_t* out, const ngtcp2_crypto_aead* aead, const ngtcp2_crypto_aead_ctx* context, const std::uint8_t* plain,
            std::size_t size, const std::uint8_t* nonce, std::size_t nonce_size, const std::uint8_t* associated,
            std::size_t associated_size) {
  if (!is_ours(context->native_handle))
    return ngtcp2_crypto_encrypt_cb(out, aead, context, plain, size, nonce, nonce_size, associated, associated_size);
  untagged<crypto::AeadKey>(context->native_handle)
      ->seal(span(out, size + crypto::kAeadTagBytes), view(plain, size), nonce_of(nonce), view(associated, associated_size));
  return 0;
}

int decrypt(std::uint8_t* out, const ngtcp2_crypto_aead* aead, const ngtcp2_crypto_aead_ctx* context, const std::uint8_t* sealed,
            std::size_t size, const std::uint8_t* nonce, std::size_t nonce_size, const std::uint8_t* associated,
            std::size_t associated_size) {
  if (!is_ours(context->native_handle))
    return ngtcp2_crypto_decrypt_cb(out, aead, context, sealed, size, nonce, nonce_size, associated, associated_size);
  if (size < crypto::kAeadTagBytes) return NGTCP2_ERR_DECRYPT;
  const bool genuine =
      untagged<crypto::AeadKey>(context->native_handle)
          ->open(span(out, size - crypto::kAeadTagBytes), view(sealed, size), nonce_of(nonce), view(associated, associated_size));
  return genuine ? 0 : NGTCP2_ERR_DECRYPT;
}

int mask_header(std::uint8_t* out, const ngtcp2_crypto_cipher* cipher, const ngtcp2_crypto_cipher_ctx* context,
                const std::uint8_t* sample) {
  if (!is_ours(context->native_handle)) return ngtcp2_crypto_hp_mask_cb(out, cipher, context, sample);
  untagged<crypto::HeaderMask>(context->native_handle)
      ->mask(std::span<std::byte, 5>(reinterpret_cast<std::byte*>(out), 5),
             std::span<const std::byte, 16>(reinterpret_cast<const std::byte*>(sample), 16));
  return 0;
}

void delete_aead(ngtcp2_conn* conn, ngtcp2_crypto_aead_ctx* context, void* user_data) {
  if (is_ours(context->native_handle))
    delete untagged<crypto::AeadKey>(context->native_handle);
  else
    ngtcp2_crypto_delete_crypto_aead_ctx_cb(conn, context, user_data);
}

void delete_cipher(ngtcp2_conn* conn, ngtcp2_crypto_cipher_ctx* context, void* user_data) {
  if (is_ours(context->native_handle))
    delete untagged<crypto::HeaderMask>(context->native_handle);
  else
    ngtcp2_crypto_delete_crypto_cipher_ctx_cb(conn, context, user_data);
}

void* own_aead(const std::uint8_t* key) { return tagged(std::make_unique<crypto::AeadKey>(view(key, kKeyBytes))); }

bool own_keys_are_faster() { return crypto::aead_backend() != crypto::Backend::kGnuTls; }

// ngtcp2 derives the next generation of keys and makes contexts of GnuTLS's for them; ours replace those.
int update_keys(ngtcp2_conn* conn, std::uint8_t* rx_secret, std::uint8_t* tx_secret, ngtcp2_crypto_aead_ctx* rx_context,
                std::uint8_t* rx_iv, ngtcp2_crypto_aead_ctx* tx_context, std::uint8_t* tx_iv, const std::uint8_t* current_rx_secret,
                const std::uint8_t* current_tx_secret, std::size_t secret_size, void*) {
  std::array<std::uint8_t, 64> rx_key;
  std::array<std::uint8_t, 64> tx_key;
  if (ngtcp2_crypto_update_key(conn, rx_secret, tx_secret, rx_context, rx_key.data(), rx_iv, tx_context, tx_key.data(), tx_iv,
                               current_rx_secret, current_tx_secret, secret_size) != 0)
    return NGTCP2_ERR_CALLBACK_FAILURE;
  if (own_keys_are_faster()) {
    ngtcp2_crypto_aead_ctx_free(rx_context);
    ngtcp2_crypto_aead_ctx_free(tx_context);
    rx_context->native_handle = own_aead(rx_key.data());
    tx_context->native_handle = own_aead(tx_key.data());
  }
  crypto::wipe(std::as_writable_bytes(std::span(rx_key)));
  crypto::wipe(std::as_writable_bytes(std::span(tx_key)));
  return 0;
}

// Installs one direction's keys for application data, derived as RFC 9001 section 5.1 says.
int install_direction(ngtcp2_conn* conn, bool receiving, const std::uint8_t* secret, std::size_t size) {
  const crypto::Secret key = crypto::hkdf_expand_label(view(secret, size), "quic key", {}, kKeyBytes);
  const crypto::Secret iv = crypto::hkdf_expand_label(view(secret, size), "quic iv", {}, kIvBytes);
  const crypto::Secret mask_key = crypto::hkdf_expand_label(view(secret, size), "quic hp", {}, kKeyBytes);

  ngtcp2_crypto_aead_ctx aead{tagged(std::make_unique<crypto::AeadKey>(key.view()))};
  ngtcp2_crypto_cipher_ctx cipher{tagged(std::make_unique<crypto::HeaderMask>(mask_key.view()))};
  const auto* iv_bytes = reinterpret_cast<const std::uint8_t*>(iv.view().data());
  const int installed = receiving ? ngtcp2_conn_install_rx_key(conn, secret, size, &aead, iv_bytes, iv.size(), &cipher)
                                  : ngtcp2_conn_install_tx_key(conn, secret, size, &aead, iv_bytes, iv.size(), &cipher);
  if (installed != 0) {
    delete_aead(conn, &aead, nullptr);
    delete_cipher(conn, &cipher, nullptr);
  }
  return installed;
}

int install_secrets(gnutls_session_t session, gnutls_record_encryption_level_t level, const void* rx, const void* tx, std::size_t size) {
  auto* reference = static_cast<ngtcp2_crypto_conn_ref*>(gnutls_session_get_ptr(session));
  ngtcp2_conn* conn = reference->get_conn(reference);
  const auto* rx_secret = static_cast<const std::uint8_t*>(rx);
  const auto* tx_secret = static_cast<const std::uint8_t*>(tx);
  if (level == GNUTLS_ENCRYPTION_LEVEL_APPLICATION) {
    if (rx != nullptr && install_direction(conn, true, rx_secret, size) != 0) return -1;
    if (tx != nullptr && install_direction(conn, false, tx_secret, size) != 0) return -1;
    return 0;
  }
  const auto quic_level = ngtcp2_crypto_gnutls_from_gnutls_record_encryption_level(level);
  if (rx != nullptr && ngtcp2_crypto_derive_and_install_rx_key(conn, nullptr, nullptr, nullptr, quic_level, rx_secret, size) != 0)
    return -1;
  if (tx != nullptr && ngtcp2_crypto_derive_and_install_tx_key(conn, nullptr, nullptr, nullptr, quic_level, tx_secret, size) != 0)
    return -1;
  return 0;
}

}  // namespace

void set_packet_protection(ngtcp2_callbacks& callbacks) {
  callbacks.encrypt = encrypt;
  callbacks.decrypt = decrypt;
  callbacks.hp_mask = mask_header;
  callbacks.delete_crypto_aead_ctx = delete_aead;
  callbacks.delete_crypto_cipher_ctx = delete_cipher;
  callbacks.update_key = update_keys;
}

void install_own_keys(gnutls_session_t session) {
  if (own_keys_are_faster()) gnutls_handshake_set_secret_function(session, install_secrets);
}

}  // namespace nexar::transport::quic
