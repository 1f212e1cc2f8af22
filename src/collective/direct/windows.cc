#include "collective/direct/windows.h"

#include <algorithm>
#include <functional>
#include <mutex>

namespace nexar::collective::direct {
namespace {

constexpr Rank kOwn = -1;

}  // namespace

bool Windows::add_own(std::uint32_t buffer, base::ByteView memory) { return add(own_, {kOwn, buffer, memory}); }
bool Windows::add_peer(Rank rank, std::uint32_t buffer, base::ByteView memory) { return add(peers_, {rank, buffer, memory}); }
void Windows::remove_own(std::uint32_t buffer) { remove(own_, kOwn, buffer); }
void Windows::remove_peer(Rank rank, std::uint32_t buffer) { remove(peers_, rank, buffer); }

bool Windows::add(std::vector<Window>& windows, const Window& window) {
  const std::unique_lock lock(mutex_);
  std::size_t of_rank = 0;
  for (const Window& other : windows) {
    if (other.rank != window.rank) continue;
    if (other.buffer == window.buffer) return false;
    ++of_rank;
  }
  if (of_rank == kBuffersMax) return false;
  windows.push_back(window);
  return true;
}

void Windows::remove(std::vector<Window>& windows, Rank rank, std::uint32_t buffer) {
  const std::unique_lock lock(mutex_);
  std::erase_if(windows, [&](const Window& window) { return window.rank == rank && window.buffer == buffer; });
}

std::optional<Lent> Windows::find(const void* memory, std::uint64_t bytes) const {
  const std::shared_lock lock(mutex_);
  const auto* first = static_cast<const std::byte*>(memory);
  for (const Window& window : own_) {
    const std::less<const std::byte*> before;
    if (before(first, window.memory.data()) || before(window.memory.data() + window.memory.size(), first)) continue;
    const auto offset = static_cast<std::uint64_t>(first - window.memory.data());
    if (bytes <= window.memory.size() - offset) return Lent{1, window.buffer, offset};
  }
  return std::nullopt;
}

const std::byte* Windows::address(Rank rank, std::uint32_t buffer, std::uint64_t offset, std::uint64_t bytes) const {
  const std::shared_lock lock(mutex_);
  for (const Window& window : peers_)
    if (window.rank == rank && window.buffer == buffer)
      return offset <= window.memory.size() && bytes <= window.memory.size() - offset ? window.memory.data() + offset : nullptr;
  return nullptr;
}

}  // namespace nexar::collective::direct
