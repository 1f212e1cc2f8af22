#include "crypto/hex.h"

#include <charconv>
#include <random>

#include "base/assert.h"

namespace nexar::crypto {

std::vector<std::byte> from_hex(std::string_view digits) {
  NEXAR_ASSERT(digits.size() % 2 == 0, "a byte has two digits");
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(digits.data() + i, digits.data() + i + 2, value, 16);
    NEXAR_ASSERT(error == std::errc() && end == digits.data() + i + 2, "a known answer has hexadecimal digits only");
    bytes.push_back(static_cast<std::byte>(value));
  }
  return bytes;
}

std::vector<std::byte> from_text(std::string_view text) {
  const base::ByteView bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> noise(std::size_t size, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

}  // namespace nexar::crypto
