// How a buffer of a collective is cut: into slices, one for each rank where each has its own, and each slice into pieces.
//
//   slices    |    rank 0    |    rank 1    |    rank 2    |
//   piece 0   |####          |####          |####          |
//   piece 1   |    ####      |    ####      |    ####      |
//
// A piece takes the same elements of every slice, so that a collective of pieces is a collective of the same kind.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nexar/device.h"

namespace nexar::tensor {

class Slices {
 public:
  Slices() = default;  // none
  explicit Slices(std::span<const std::uint64_t> counts) : counts_(counts.begin(), counts.end()) {}
  static Slices one(std::uint64_t count) { return Slices(std::span(&count, 1)); }
  static Slices even(int n, std::uint64_t count) { return Slices(std::vector<std::uint64_t>(static_cast<std::size_t>(n), count)); }

  const std::vector<std::uint64_t>& counts() const { return counts_; }
  std::uint64_t longest() const { return counts_.empty() ? 0 : *std::max_element(counts_.begin(), counts_.end()); }

  // The bytes of all, or nothing when there is no number for them.
  std::optional<std::uint64_t> bytes(std::size_t element) const {
    std::uint64_t total = 0;
    for (const std::uint64_t count : counts_)
      if (__builtin_add_overflow(total, count, &total)) return std::nullopt;
    if (__builtin_mul_overflow(total, element, &total)) return std::nullopt;
    return total;
  }

  // Bytes of the longest piece of `elements` elements of each slice.
  std::uint64_t piece_bytes(std::uint64_t elements, std::size_t element) const {
    std::uint64_t total = 0;
    for (const std::uint64_t count : counts_) total += std::min(count, elements);
    return total * element;
  }

  // How many elements of each slice piece `number` has.
  std::vector<std::uint64_t> piece_counts(std::uint64_t number, std::uint64_t elements) const {
    std::vector<std::uint64_t> counts;
    counts.reserve(counts_.size());
    for (const std::uint64_t count : counts_) counts.push_back(std::min(elements, count - std::min(count, number * elements)));
    return counts;
  }

  // Where they are in a buffer that begins at `at`.
  std::vector<DeviceRegion> piece_regions(std::uint64_t number, std::uint64_t elements, DevicePointer at, std::size_t element) const {
    std::vector<DeviceRegion> regions;
    for (const std::uint64_t count : counts_) {
      const std::uint64_t first = std::min(count, number * elements);
      const std::uint64_t n = std::min(elements, count - first);
      if (n > 0) regions.push_back({at + first * element, static_cast<std::size_t>(n * element)});
      at = at + count * element;
    }
    return regions;
  }

 private:
  explicit Slices(std::vector<std::uint64_t> counts) : counts_(std::move(counts)) {}

  std::vector<std::uint64_t> counts_;
};

}  // namespace nexar::tensor
