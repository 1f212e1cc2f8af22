#include "types/node_id.h"

namespace nexar {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

std::string to_hex(base::ByteView bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte >> 4)];
    text += kDigits[std::to_integer<unsigned>(byte & std::byte{0x0f})];
  }
  return text;
}

std::optional<std::array<std::byte, kIdBytes>> id_from_hex(std::string_view text) {
  if (text.size() != 2 * kIdBytes) return std::nullopt;
  std::array<std::byte, kIdBytes> id;
  for (std::size_t i = 0; i < kIdBytes; ++i) {
    const std::size_t high = kDigits.find(text[2 * i]);
    const std::size_t low = kDigits.find(text[2 * i + 1]);
    if (high == kDigits.npos || low == kDigits.npos) return std::nullopt;
    id[i] = static_cast<std::byte>(high << 4 | low);
  }
  return id;
}

}  // namespace nexar
