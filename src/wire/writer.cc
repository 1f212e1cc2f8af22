#include "wire/writer.h"

#include <cstring>

#include "wire/utf8.h"

namespace nexar::wire {

void Writer::bytes(base::ByteView bytes) {
  if (!bytes.empty()) std::memcpy(take(bytes.size()), bytes.data(), bytes.size());
}

void Writer::text(std::string_view text, std::size_t bytes_max) {
  NEXAR_ASSERT(bytes_max <= UINT16_MAX, "the length of a text is a u16");
  const std::string fitted = fit_utf8(text, bytes_max);
  number(static_cast<std::uint16_t>(fitted.size()));
  bytes(std::as_bytes(std::span(fitted)));
}

}  // namespace nexar::wire
