#include "collective/scratch_pool.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include <fmt/format.h>

namespace nexar::collective {
namespace {

// Sizes are rounded up, so that blocks fit the next operation although it is a little larger.
constexpr std::uint64_t kSmallestBytes = 4096;

}  // namespace

Result<ScratchPool::Block> ScratchPool::take(std::uint64_t bytes) {
  if (bytes == 0) return Block{};
  const auto found =
      std::lower_bound(kept_.begin(), kept_.end(), bytes, [](const Block& block, std::uint64_t wanted) { return block.bytes < wanted; });
  if (found != kept_.end() && found->bytes / 4 <= std::max(bytes, kSmallestBytes)) {  // a small operation does not take a huge block away
    Block block = std::move(*found);
    kept_.erase(found);
    kept_bytes_ -= block.bytes;
    return block;
  }
  const std::uint64_t rounded = std::bit_ceil(std::max(bytes, kSmallestBytes));
  std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[rounded]);
  if (memory == nullptr) return Error(ErrorCode::kOverloaded, fmt::format("no memory for {} bytes that a collective needs", bytes));
  return Block{std::move(memory), rounded};
}

void ScratchPool::give(Block block) {
  if (block.bytes == 0 || block.bytes > kScratchKeptMax) return;
  kept_bytes_ += block.bytes;
  const auto place =
      std::lower_bound(kept_.begin(), kept_.end(), block.bytes, [](const Block& one, std::uint64_t bytes) { return one.bytes < bytes; });
  kept_.insert(place, std::move(block));
  while (kept_bytes_ > kScratchKeptMax) {
    kept_bytes_ -= kept_.back().bytes;
    kept_.pop_back();
  }
}

}  // namespace nexar::collective
