// A buffer that lies in several places.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace nexar::collective {

// Where the elements of a buffer from `first` on lie, up to the `first` of the next piece.
struct Piece {
  std::byte* data;
  std::uint64_t first;
};

// Elements that lie one after the other.
struct Stretch {
  std::byte* data;
  std::uint64_t count;
};

// A list of pieces as one buffer of `count` elements: the first piece begins with element 0, none is empty.
struct PieceList {
  std::span<const Piece> pieces;
  std::uint64_t count;
  std::size_t element;  // bytes

  // Which piece an element lies in.
  std::size_t index(std::uint64_t first) const {
    const auto next = std::upper_bound(pieces.begin(), pieces.end(), first,
                                       [](std::uint64_t wanted, const Piece& piece) { return wanted < piece.first; });
    return static_cast<std::size_t>(next - pieces.begin()) - 1;
  }

  // An element and those that follow it in its piece.
  Stretch from(std::uint64_t first) const { return stretch(index(first), first); }

  // Calls work(memory, offset, count) for each stretch of elements [first, first + wanted); `offset` of them come before it.
  template <typename Work>
  void for_each_stretch(std::uint64_t first, std::uint64_t wanted, Work work) const {
    if (wanted == 0) return;
    std::size_t piece = index(first);
    for (std::uint64_t offset = 0; offset < wanted; ++piece) {
      const Stretch all = stretch(piece, first + offset);
      const std::uint64_t now = std::min(all.count, wanted - offset);
      work(all.data, offset, now);
      offset += now;
    }
  }

 private:
  Stretch stretch(std::size_t piece, std::uint64_t first) const {
    const std::uint64_t end = piece + 1 < pieces.size() ? pieces[piece + 1].first : count;
    return {pieces[piece].data + (first - pieces[piece].first) * element, end - first};
  }
};

}  // namespace nexar::collective
