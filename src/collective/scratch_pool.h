// Memory for plans that need some of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "nexar/result.h"

namespace nexar::collective {

// Bytes that are kept for the next operation when nobody uses them. What is in use is bounded by the operations in flight.
inline constexpr std::uint64_t kScratchKeptMax = 64u << 20;

// Thread: engine. Owned by whoever runs plans; outlives them.
class ScratchPool {
 public:
  struct Block {
    std::unique_ptr<std::byte[]> memory;
    std::uint64_t bytes = 0;
  };

  // At least `bytes` of undefined content; an empty block for none. kOverloaded when there is no memory.
  Result<Block> take(std::uint64_t bytes);

  // Gives a block back. The largest that are kept make way when there are too many bytes.
  void give(Block block);

  std::uint64_t kept_bytes() const { return kept_bytes_; }

 private:
  std::vector<Block> kept_;  // by size
  std::uint64_t kept_bytes_ = 0;
};

}  // namespace nexar::collective
