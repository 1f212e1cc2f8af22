// Known answers are written in hexadecimal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "types/node_id.h"

namespace nexar::crypto {

std::vector<std::byte> from_hex(std::string_view digits);

std::vector<std::byte> from_text(std::string_view text);

// `size` bytes that look random and are the same for the same seed.
std::vector<std::byte> noise(std::size_t size, std::uint32_t seed);

inline NodeId node_id(unsigned char fill) {
  NodeId id;
  id.bytes.fill(static_cast<std::byte>(fill));
  return id;
}

inline ClusterId cluster_id(unsigned char fill) {
  ClusterId id;
  id.bytes.fill(static_cast<std::byte>(fill));
  return id;
}

}  // namespace nexar::crypto
