#include "doctor/encryption_rate.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <vector>

#include "base/bytes.h"
#include "crypto/aead.h"

namespace nexar::tool::doctor {

double encryption_rate() {
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t kRecord = 16384;  // the payload of a TCP lane's record
  constexpr auto kTime = std::chrono::milliseconds(20);
  const std::array<std::byte, crypto::kAeadKeyBytes> secret{};
  const crypto::AeadKey key{secret};
  std::vector<std::byte> bytes(kRecord + crypto::kAeadTagBytes);
  crypto::Nonce nonce{};
  std::size_t records = 0;
  const Clock::time_point begun = Clock::now();
  Clock::time_point now = begun;
  for (; now - begun < kTime; now = Clock::now()) {
    nonce[0] = static_cast<std::byte>(++records);
    key.seal(bytes, base::ByteView(bytes).first(kRecord), nonce, {});
  }
  return static_cast<double>(records * kRecord) / std::chrono::duration<double>(now - begun).count();
}

}  // namespace nexar::tool::doctor
