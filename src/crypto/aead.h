// AES-128-GCM: bytes that nobody can read or change unnoticed. Everything that leaves the host passes here, so this is the per-byte
// price of encryption.
//
// Two back-ends give identical bytes: ipsec-mb where the CPU has VAES and AVX-512 (three times as fast there), GnuTLS everywhere else.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace nexar::crypto {

inline constexpr std::size_t kAeadKeyBytes = 16;
inline constexpr std::size_t kAeadNonceBytes = 12;
inline constexpr std::size_t kAeadTagBytes = 16;

// Regions of one sealed record: room for a few headers and the pieces of a ring buffer, in an array on the stack.
inline constexpr std::size_t kAeadRegionsMax = 16;

// Must differ for every record under one key: a nonce used twice gives the key away.
using Nonce = std::array<std::byte, kAeadNonceBytes>;

enum class Backend : std::uint8_t { kGnuTls, kIpsecMb };

// "GnuTLS" or "ipsec-mb".
std::string_view to_string(Backend backend);

// Whether this build carries the back-end and this CPU has what makes it worth using.
bool is_available(Backend backend);

// The fastest that is available; the same at every call.
Backend aead_backend();

// For people: `AES-128-GCM by ipsec-mb (AVX-512)` or `AES-128-GCM by GnuTLS 3.7.9`.
std::string aead_description();

class AeadCipher;

// One key, expanded and ready. It is wiped when it goes.
//
// Thread: any; seal and open of one key may run in several threads at once.
class AeadKey {
 public:
  // `key` has kAeadKeyBytes; `backend` is available.
  explicit AeadKey(base::ByteView key, Backend backend = aead_backend());
  AeadKey(AeadKey&&) noexcept;
  AeadKey& operator=(AeadKey&&) noexcept;
  ~AeadKey();

  // Writes the sealed `plain` and its tag to `out`, which is kAeadTagBytes longer. `out` begins where `plain` does, or they do not overlap.
  // `aad` is authenticated but not carried.
  void seal(base::ByteSpan out, base::ByteView plain, const Nonce& nonce, base::ByteView aad) const;

  // The same from several regions, which together are kAeadTagBytes shorter than `out` and do not overlap it.
  void seal(base::ByteSpan out, std::span<const base::ByteView> plain, const Nonce& nonce, base::ByteView aad) const;

  // Writes the plain text to `out`, which is kAeadTagBytes shorter than `sealed` and begins where it does or does not overlap it. False
  // when anything was changed on the way, or `sealed` is too short to hold a tag; `out` is then all zeros.
  [[nodiscard]] bool open(base::ByteSpan out, base::ByteView sealed, const Nonce& nonce, base::ByteView aad) const;

  // The same into several regions, which do not overlap `sealed`. A region is not to be read before this has returned true.
  [[nodiscard]] bool open(std::span<const base::ByteSpan> out, base::ByteView sealed, const Nonce& nonce, base::ByteView aad) const;

 private:
  std::unique_ptr<const AeadCipher> cipher_;
};

}  // namespace nexar::crypto
