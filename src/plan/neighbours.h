// Who talks to whom: rings, binomial trees, and powers of two with the other ranks folded away.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "nexar/ids.h"

namespace nexar::plan {

// Ranks in a circle, in either direction. Positions count along the direction.
class Ring {
 public:
  enum class Direction : std::uint8_t { kUp, kDown };

  Ring(Rank rank, Rank size, Direction direction = Direction::kUp) : rank_(rank), size_(size), direction_(direction) {}

  Rank size() const { return size_; }
  Rank position() const { return direction_ == Direction::kUp ? rank_ : size_ - 1 - rank_; }
  Rank next() const { return rank_at(1); }
  Rank previous() const { return rank_at(-1); }

 private:
  Rank rank_at(Rank distance) const { return (rank_ + (direction_ == Direction::kUp ? distance : -distance) + size_) % size_; }

  Rank rank_;
  Rank size_;
  Direction direction_;
};

// A ring of some ranks of a group, in the order given.
class PartRing {
 public:
  // `ranks` stays where it is.
  PartRing(std::span<const Rank> ranks, Rank position) : ranks_(ranks), position_(position) {}

  Rank size() const { return static_cast<Rank>(ranks_.size()); }
  Rank position() const { return position_; }
  Rank next() const { return at(position_ + 1); }
  Rank previous() const { return at(position_ - 1); }
  Rank at(Rank position) const { return ranks_[static_cast<std::size_t>((position + size()) % size())]; }

 private:
  std::span<const Rank> ranks_;
  Rank position_;
};

// The binomial tree over positions 0..n-1, position 0 being the top: the parent of a position is the position without its lowest bit, so
// that every subtree is a run of positions.
//
//   0 ── 1
//   ├─── 2 ── 3
//   └─── 4 ── 5
//        └─── 6 ── 7
class Tree {
 public:
  Tree(Rank rank, Rank size, Rank top) : size_(size), top_(top), position_((rank - top + size) % size) {}

  Rank position() const { return position_; }
  bool is_top() const { return position_ == 0; }
  Rank parent() const { return rank_at(position_ & (position_ - 1)); }

  // Positions of the subtree of `position`, which is one of them.
  Rank subtree(Rank position) const {
    const Rank reach = position == 0 ? size_ : position & -position;
    return reach < size_ - position ? reach : size_ - position;
  }

  // Positions, the smallest subtree first: together with this position they are one run.
  std::vector<Rank> children() const {
    std::vector<Rank> found;
    for (Rank bit = 1; bit < size_ && (position_ & bit) == 0 && position_ + bit < size_; bit <<= 1) found.push_back(position_ + bit);
    return found;
  }

  Rank rank_at(Rank position) const { return (position + top_) % size_; }

 private:
  Rank size_;
  Rank top_;
  Rank position_;
};

// The largest power of two of a group. The first 2 * extra ranks form pairs; the odd one of each steps aside, gives its values to the even
// one before, and gets the result after. Members are numbered in rank order, so that neighbours stay neighbours.
class Fold {
 public:
  Fold(Rank rank, Rank size)
      : rank_(rank), power_(static_cast<Rank>(std::bit_floor(static_cast<std::uint32_t>(size)))), extra_(size - power_) {}

  Rank power() const { return power_; }
  int rounds() const { return std::countr_zero(static_cast<std::uint32_t>(power_)); }
  bool paired() const { return rank_ < 2 * extra_; }
  bool aside() const { return paired() && rank_ % 2 == 1; }
  Rank partner() const { return rank_ ^ 1; }  // of a paired rank

  Rank member() const { return rank_ < 2 * extra_ ? rank_ / 2 : rank_ - extra_; }
  Rank rank_of(Rank member) const { return member < extra_ ? 2 * member : member + extra_; }

 private:
  Rank rank_;
  Rank power_;
  Rank extra_;
};

}  // namespace nexar::plan
