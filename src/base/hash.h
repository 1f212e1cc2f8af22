// A 64-bit digest of text, the same in every process and build: for comparing, not for secrets.
#pragma once

#include <cstdint>
#include <string_view>

namespace nexar::base {

// FNV-1a.
constexpr std::uint64_t hash64(std::string_view text, std::uint64_t hash = 0xcbf29ce484222325u) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace nexar::base
