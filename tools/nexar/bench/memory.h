// The memory of one rank in a call: filled, lent to the call, and compared afterwards with what the call must have left there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "bench/call.h"
#include "bench/values.h"

namespace nexar::bench {

// Where the bytes of a call lie, and what keeps them there.
struct Block {
  std::span<std::byte> bytes;
  std::shared_ptr<const void> owner;
};
using Allocate = std::function<Block(std::size_t bytes)>;
Block from_heap(std::size_t bytes);

class Memory {
 public:
  // `seed` is the same on all ranks.
  Memory(const Call& call, Rank rank, std::uint64_t seed, const Allocate& allocate = from_heap);

  // Fills the input; what is not input is set to what no result is expected to be.
  void fill();

  // Both null when they would be empty.
  const std::byte* input() const { return input_; }
  std::byte* output() { return output_; }
  std::size_t input_bytes() const { return input_bytes_; }
  std::size_t output_bytes() const { return output_bytes_; }

  // Elements that are not what they must be after the call: results, inputs that it may not change, and what lies beyond the buffers.
  std::uint64_t count_wrong() const { return count_wrong({output_, output_bytes_}) + count_changed(); }

  // The same of a result that lies elsewhere, as owned strings do.
  std::uint64_t count_wrong(std::span<const std::byte> result) const;

 private:
  std::uint64_t count_changed() const;
  void expect(const Piece& piece, std::uint64_t first, std::uint64_t count, std::byte* out) const;

  Call call_;
  Rank rank_;
  Values values_;
  std::vector<Piece> pieces_;
  std::size_t input_bytes_ = 0;
  std::size_t output_bytes_ = 0;
  Block first_;   // of apart buffers the input's, otherwise both
  Block second_;  // of apart buffers the output's
  const std::byte* input_ = nullptr;
  std::byte* output_ = nullptr;
};

}  // namespace nexar::bench
