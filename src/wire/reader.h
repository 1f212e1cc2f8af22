// Takes numbers, texts and bytes from a payload, front to back.
//
// The first thing that does not fit makes the reader fail, and from then on it gives zeros and empty views: a decoder reads everything
// and asks once, at the end. It allocates nothing and never reads past its bytes.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace nexar::wire {

class Reader {
 public:
  explicit Reader(base::ByteView bytes) : rest_(bytes) {}

  template <std::integral T>
  T number() {
    const base::ByteView taken = bytes(sizeof(T));
    return taken.empty() ? T{} : base::load_le<T>(taken.data());
  }

  // The next `count` bytes.
  base::ByteView bytes(std::size_t count);

  // A u16 length, at most `bytes_max`, and so many bytes of UTF-8. The view is into the payload.
  std::string_view text(std::size_t bytes_max);

  // Marks what was read as wrong. `what` completes "the frame ..." and lives as long as the program; the first one stays.
  void fail(const char* what);

  std::size_t left() const { return rest_.size(); }
  bool failed() const { return fault_ != nullptr; }

  // Why the reader failed, or that bytes are left over; null when the payload was read exactly.
  const char* finish();

 private:
  base::ByteView rest_;
  const char* fault_ = nullptr;
};

}  // namespace nexar::wire
