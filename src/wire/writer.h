// Puts numbers, texts and bytes into a payload, front to back. What is written is ours, so the space for it is asserted.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "base/bytes.h"

namespace nexar::wire {

class Writer {
 public:
  explicit Writer(base::ByteSpan out) : out_(out) {}

  template <std::integral T>
  void number(T value) {
    base::store_le(take(sizeof value), value);
  }

  void bytes(base::ByteView bytes);

  // A u16 length and the text: made UTF-8 where it is not, and cut to `bytes_max`, because texts may quote what users wrote.
  void text(std::string_view text, std::size_t bytes_max);

  std::size_t size() const { return size_; }

 private:
  std::byte* take(std::size_t count) {
    NEXAR_ASSERT(count <= out_.size() - size_, "a frame's buffer holds its longest payload");
    std::byte* at = out_.data() + size_;
    size_ += count;
    return at;
  }

  base::ByteSpan out_;
  std::size_t size_ = 0;
};

}  // namespace nexar::wire
