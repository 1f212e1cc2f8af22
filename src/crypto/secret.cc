#include "crypto/secret.h"

#include <cstring>

namespace nexar::crypto {

void wipe(base::ByteSpan bytes) {
  if (bytes.empty()) return;
  std::memset(bytes.data(), 0, bytes.size());
  asm volatile("" : : "r"(bytes.data()) : "memory");  // the compiler must assume that somebody reads them
}

bool equal_constant_time(base::ByteView a, base::ByteView b) {
  if (a.size() != b.size()) return false;
  std::byte difference{};
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= a[i] ^ b[i];
    asm volatile("" : "+r"(difference));  // no early exit can be derived from what is not known
  }
  return difference == std::byte{};
}

Secret::Secret(std::size_t size) : bytes_(std::make_unique<std::byte[]>(size)), size_(size) {}

Secret::Secret(base::ByteView content) : Secret(content.size()) {
  if (!content.empty()) std::memcpy(bytes_.get(), content.data(), content.size());
}

Secret& Secret::operator=(Secret&& other) noexcept {
  if (this != &other) {
    wipe(span());
    bytes_ = std::move(other.bytes_);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

}  // namespace nexar::crypto
