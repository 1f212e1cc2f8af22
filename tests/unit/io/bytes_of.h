// Bytes for tests to send, and to compare with what came.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace nexar::io {

// A run of bytes in which no two short pieces are equal by accident.
inline std::vector<std::byte> pattern(std::size_t length) {
  std::vector<std::byte> bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>((i * 131 + i / 251) & 0xff);
  return bytes;
}

inline base::ByteView bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

inline std::string text_of(base::ByteView bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

}  // namespace nexar::io
