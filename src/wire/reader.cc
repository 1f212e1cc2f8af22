#include "wire/reader.h"

#include "wire/utf8.h"

namespace nexar::wire {

base::ByteView Reader::bytes(std::size_t count) {
  if (count > rest_.size()) fail("ends too early");
  if (failed()) return {};
  const base::ByteView taken = rest_.first(count);
  rest_ = rest_.subspan(count);
  return taken;
}

std::string_view Reader::text(std::size_t bytes_max) {
  const auto length = number<std::uint16_t>();
  if (length > bytes_max) fail("has a text that is longer than allowed");
  const base::ByteView taken = bytes(length);
  if (taken.empty()) return {};
  const std::string_view text(reinterpret_cast<const char*>(taken.data()), taken.size());
  if (!is_utf8(text)) {
    fail("has a text that is not UTF-8");
    return {};
  }
  return text;
}

void Reader::fail(const char* what) {
  if (fault_ == nullptr) fault_ = what;
}

const char* Reader::finish() {
  if (!rest_.empty()) fail("has bytes after its end");
  return fault_;
}

}  // namespace nexar::wire
