#include "cluster/encoding.h"

#include <span>

#include "base/assert.h"

namespace nexar::cluster {
namespace {

constexpr std::string_view kBase32 = "abcdefghijklmnopqrstuvwxyz234567";
constexpr std::string_view kHex = "0123456789abcdef";
constexpr unsigned kBitsPerLetter = 5;

}  // namespace

std::string to_base32(base::ByteView bytes) {
  NEXAR_ASSERT(bytes.size() % kBitsPerLetter == 0, "base32 without padding has whole groups");
  std::string text;
  text.reserve(bytes.size() * 8 / kBitsPerLetter);  // never grown, which would leave copies behind
  unsigned held = 0;
  unsigned bits = 0;
  for (const std::byte byte : bytes) {
    held = (held << 8 | std::to_integer<unsigned>(byte)) & 0xfffu;  // at most four bits are left over from the byte before
    for (bits += 8; bits >= kBitsPerLetter; bits -= kBitsPerLetter) text += kBase32[held >> (bits - kBitsPerLetter) & 31u];
  }
  return text;
}

bool from_base32(std::string_view text, base::ByteSpan out) {
  if (out.size() % kBitsPerLetter != 0 || text.size() != out.size() * 8 / kBitsPerLetter) return false;
  unsigned held = 0;
  unsigned bits = 0;
  std::size_t at = 0;
  for (const char letter : text) {
    const std::size_t value = kBase32.find(letter);
    if (value == kBase32.npos) return false;
    held = (held << kBitsPerLetter | static_cast<unsigned>(value)) & 0xfffu;
    bits += kBitsPerLetter;
    if (bits < 8) continue;
    bits -= 8;
    out[at++] = static_cast<std::byte>(held >> bits & 0xffu);
  }
  return true;
}

std::optional<crypto::Secret> from_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  crypto::Secret bytes(text.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t high = kHex.find(text[2 * i]);
    const std::size_t low = kHex.find(text[2 * i + 1]);
    if (high == kHex.npos || low == kHex.npos) return std::nullopt;
    bytes.span()[i] = static_cast<std::byte>(high << 4 | low);
  }
  return bytes;
}

void wipe(std::string& text) { crypto::wipe(std::as_writable_bytes(std::span(text.data(), text.size()))); }

}  // namespace nexar::cluster
