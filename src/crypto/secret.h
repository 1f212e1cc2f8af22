// Bytes that nobody else may see: how they are compared, and how they are forgotten.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "base/bytes.h"

namespace nexar::crypto {

// Overwrites with zeros, also where the compiler can see that nobody reads them again.
void wipe(base::ByteSpan bytes);

// Takes the same time for any two contents of one length. The lengths themselves are no secret.
bool equal_constant_time(base::ByteView a, base::ByteView b);

// A buffer of its own that is wiped before its memory is given back. It has one owner; whoever wants a second copy says so.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::size_t size);        // zeros, to be written
  explicit Secret(base::ByteView content);  // a copy
  Secret(Secret&& other) noexcept : bytes_(std::move(other.bytes_)), size_(std::exchange(other.size_, 0)) {}
  Secret& operator=(Secret&& other) noexcept;
  ~Secret() { wipe(span()); }

  base::ByteView view() const { return {bytes_.get(), size_}; }
  base::ByteSpan span() { return {bytes_.get(), size_}; }
  std::size_t size() const { return size_; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_ = 0;
};

}  // namespace nexar::crypto
