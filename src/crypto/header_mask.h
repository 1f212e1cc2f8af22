// The mask of QUIC's header protection: one AES-128 block for each packet (RFC 9001, 5.4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/bytes.h"

namespace nexar::crypto {

inline constexpr std::size_t kHeaderMaskKeyBytes = 16;
inline constexpr std::size_t kHeaderMaskBytes = 5;     // the flags and up to four bytes of packet number
inline constexpr std::size_t kHeaderSampleBytes = 16;  // of the packet's sealed payload

enum class MaskEngine : std::uint8_t { kGnuTls, kAesInstructions };

bool is_available(MaskEngine engine);

// The fastest that is available; the same at every call.
MaskEngine mask_engine();

class BlockCipher;

// One key of header protection. It is wiped when it goes.
//
// Thread: any; several may ask one key at once.
class HeaderMask {
 public:
  // `key` has kHeaderMaskKeyBytes; `engine` is available.
  explicit HeaderMask(base::ByteView key, MaskEngine engine = mask_engine());
  HeaderMask(HeaderMask&&) noexcept;
  HeaderMask& operator=(HeaderMask&&) noexcept;
  ~HeaderMask();

  void mask(std::span<std::byte, kHeaderMaskBytes> out, std::span<const std::byte, kHeaderSampleBytes> sample) const;

 private:
  std::unique_ptr<const BlockCipher> cipher_;
};

}  // namespace nexar::crypto
