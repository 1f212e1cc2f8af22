// The bounds on strangers: how many handshakes may be pending, and who has to show first that its address is real.
//
// Below kRetryAbove pending handshakes everybody is let in at once. Above it a client must come back with a token from a Retry packet, for
// which nothing is remembered here. When kPendingMax are pending, the oldest makes way for a newcomer that has such a token, so a flood
// from forged addresses cannot keep a real one out.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace nexar::transport::quic {

inline constexpr std::size_t kRetryAbove = 16;
inline constexpr std::size_t kPendingMax = 48;                                // about 100 KiB each: 4.8 MiB for strangers at most
inline constexpr base::Duration kHandshakeTimeout = std::chrono::seconds(3);  // then a pending handshake is dropped
inline constexpr base::Duration kRetryTokenLifetime = std::chrono::seconds(10);

enum class Admission : std::uint8_t {
  kAdmit,          // begin the handshake
  kRetry,          // send a Retry packet, remember nothing
  kReplaceOldest,  // drop the oldest pending handshake, then begin
};

constexpr Admission admit(std::size_t pending, bool has_valid_token) {
  if (!has_valid_token) return pending >= kRetryAbove ? Admission::kRetry : Admission::kAdmit;
  return pending >= kPendingMax ? Admission::kReplaceOldest : Admission::kAdmit;
}

}  // namespace nexar::transport::quic
