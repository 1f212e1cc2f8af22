// How a buffer is cut into one piece for each rank.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "nexar/ids.h"

namespace nexar::plan {

// Elements [first, first + count).
struct Extent {
  std::uint64_t first = 0;
  std::uint64_t count = 0;

  std::uint64_t end() const { return first + count; }
  friend bool operator==(const Extent&, const Extent&) = default;
};

class Cut {
 public:
  // n pieces of nearly the same size: count / n elements, the first count mod n pieces one more.
  static Cut chunks(std::uint64_t count, Rank n);

  // n pieces of `count` elements each.
  static Cut slots(std::uint64_t count, Rank n);

  // A piece of counts[i] elements for each i, one after the other.
  static Cut uneven(std::span<const std::uint64_t> counts);

  // Piece i; indices wrap, so that an algorithm may write rank - 1.
  Extent piece(std::int64_t i) const;

  // Pieces [i, i + n) as one extent; does not wrap.
  Extent pieces(std::int64_t i, std::int64_t n) const;

  // The piece that an element lies in; not for uneven ones.
  std::int64_t piece_at(std::uint64_t element) const;

  std::int64_t size() const { return size_; }
  std::uint64_t largest() const;  // elements of the largest piece
  std::uint64_t total() const;

 private:
  std::uint64_t start(std::int64_t i) const;  // where piece i begins; start(size) is the end

  std::int64_t size_ = 1;
  std::uint64_t base_ = 0;             // elements of every piece
  std::uint64_t larger_ = 0;           // pieces that have one more
  std::vector<std::uint64_t> starts_;  // of uneven pieces, with the end; empty otherwise
};

}  // namespace nexar::plan
