#include "wire/utf8.h"

#include "base/assert.h"

namespace nexar::wire {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view kEllipsis = "\xE2\x80\xA6";     // U+2026

bool in(char c, unsigned low, unsigned high) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= low && byte <= high;
}

// Length of the sequence that the lead byte of several opens, and the range of the byte after it (Unicode, table 3-7).
struct Lead {
  std::size_t length;
  unsigned low;
  unsigned high;
};

Lead lead_of(char c) {
  if (in(c, 0xc2, 0xdf)) return {2, 0x80, 0xbf};
  if (in(c, 0xe0, 0xe0)) return {3, 0xa0, 0xbf};
  if (in(c, 0xed, 0xed)) return {3, 0x80, 0x9f};  // no surrogates
  if (in(c, 0xe1, 0xef)) return {3, 0x80, 0xbf};
  if (in(c, 0xf0, 0xf0)) return {4, 0x90, 0xbf};
  if (in(c, 0xf1, 0xf3)) return {4, 0x80, 0xbf};
  if (in(c, 0xf4, 0xf4)) return {4, 0x80, 0x8f};  // nothing past U+10FFFF
  return {0, 0, 0};
}

// Bytes of the well-formed character at the start of `text`, which is not empty; 0 when there is none.
std::size_t character(std::string_view text) {
  if (static_cast<unsigned char>(text[0]) < 0x80) return 1;
  const Lead lead = lead_of(text[0]);
  if (lead.length == 0 || lead.length > text.size() || !in(text[1], lead.low, lead.high)) return 0;
  for (std::size_t i = 2; i < lead.length; ++i)
    if (!in(text[i], 0x80, 0xbf)) return 0;
  return lead.length;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = character(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string fit_utf8(std::string_view text, std::size_t bytes_max) {
  NEXAR_ASSERT(bytes_max >= kEllipsis.size(), "a text can at least say that it was cut");
  if (text.size() <= bytes_max && is_utf8(text)) return std::string(text);
  std::string fitted;
  std::size_t cut = 0;  // where an ellipsis still fits
  while (!text.empty()) {
    const std::size_t length = character(text);
    const std::string_view next = length == 0 ? kReplacement : text.substr(0, length);
    if (fitted.size() + next.size() > bytes_max) return fitted.substr(0, cut).append(kEllipsis);
    fitted += next;
    if (fitted.size() + kEllipsis.size() <= bytes_max) cut = fitted.size();
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return fitted;
}

}  // namespace nexar::wire
