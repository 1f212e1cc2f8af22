#include "collective/direct/layout.h"

#include <algorithm>
#include <new>

namespace nexar::collective::direct {

std::size_t Layout::slot_bytes_for(std::size_t bytes, Rank ranks) {
  if (ranks < 1 || ranks > kRanksMax) return 0;
  const std::size_t share = bytes / static_cast<std::size_t>(ranks);
  const std::size_t fixed = sizeof(Progress) + 2 * sizeof(Header);
  if (share < fixed) return 0;
  // Twice a cache line, so that every rank's part begins at a multiple of what Progress asks for.
  const std::size_t slot = (share - fixed) / 2 / (2 * kCacheLine) * (2 * kCacheLine);
  return slot < kSlotBytesMin ? 0 : std::min(slot, kSlotBytes);
}

void Layout::initialise(std::byte* base, Sequence first) const {
  for (Rank rank = 0; rank < ranks_; ++rank) {
    auto* progress = new (base + static_cast<std::size_t>(rank) * rank_bytes()) Progress{};
    progress->left.store(end_of(first - 1));
    progress->entered.store(first - 1);
    progress->failed.store(first - 1);
    progress->lends.store((first - 1) << 1);
    for (unsigned slot : {0U, 1U}) {
      auto* header = new (body(base, rank, slot) - sizeof(Header)) Header{{end_of(first - 1)}, {0}, {}};
      header->with_body.reduced.store(end_of(first - 1));
    }
  }
}

}  // namespace nexar::collective::direct
