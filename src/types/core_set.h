// Cores of one host, by the numbers that its kernel gives them.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <vector>

#include "base/bytes.h"

namespace nexar {

// A set of cores. The empty one stands for cores that nobody knows: whoever runs has one.
class CoreSet {
 public:
  // 1024 cores, as many as the kernel tells in the usual way.
  static constexpr std::size_t kBytesMax = 128;
  static constexpr int kCoreEnd = static_cast<int>(8 * kBytesMax);

  CoreSet() = default;
  CoreSet(std::initializer_list<int> cores);

  // As bytes() gave it; nothing for more than kBytesMax bytes and for a last byte of zero: a set has one form.
  static std::optional<CoreSet> from_bytes(base::ByteView bytes);

  void add(int core);  // 0 to kCoreEnd - 1

  bool is_known() const { return !bytes_.empty(); }
  int size() const;
  bool meets(const CoreSet& other) const;  // whether a core is in both

  // Core c is bit c % 8 of byte c / 8; there is no byte after that of the highest core.
  base::ByteView bytes() const { return bytes_; }

  friend bool operator==(const CoreSet&, const CoreSet&) = default;

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace nexar
