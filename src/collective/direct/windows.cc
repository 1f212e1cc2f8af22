#include "collective/direct/windows.h"

#include <algorithm>
#include <functional>
#include <mutex>

namespace nexar::collective::direct {
namespace {

std::vector<int> readers_of(std::vector<int> locals, Rank self) {
  locals.erase(locals.begin() + self);
  std::sort(locals.begin(), locals.end());
  return locals;
}

}  // namespace

bool Windows::add_own(std::uint32_t buffer, base::ByteView memory, std::weak_ptr<const void> owner) {
  const std::unique_lock lock(mutex_);
  const bool known = std::any_of(own_.begin(), own_.end(), [&](const Own& one) { return one.buffer == buffer; });
  if (known || own_.size() == kBuffersMax) return false;
  own_.push_back({buffer, memory, std::move(owner), {}});
  return true;
}

void Windows::set_mapped(std::uint32_t buffer, int local) {
  const std::unique_lock lock(mutex_);
  const auto found = std::find_if(own_.begin(), own_.end(), [&](const Own& one) { return one.buffer == buffer; });
  if (found == own_.end()) return;
  const auto at = std::lower_bound(found->mapped_by.begin(), found->mapped_by.end(), local);
  if (at == found->mapped_by.end() || *at != local) found->mapped_by.insert(at, local);
}

void Windows::remove_own(std::uint32_t buffer) {
  const std::unique_lock lock(mutex_);
  std::erase_if(own_, [&](const Own& one) { return one.buffer == buffer; });
}

bool Windows::add_peer(int local, std::uint32_t buffer, base::ByteView memory, std::shared_ptr<const void> mapping) {
  const std::unique_lock lock(mutex_);
  std::size_t of_rank = 0;
  for (const Peer& other : peers_) {
    if (other.local != local) continue;
    if (other.buffer == buffer) return false;
    ++of_rank;
  }
  if (of_rank == kBuffersMax) return false;
  peers_.push_back({local, buffer, memory, std::move(mapping)});
  return true;
}

void Windows::remove_peer(int local, std::uint32_t buffer) {
  retire([&](const Peer& one) { return one.local == local && one.buffer == buffer; });
}

void Windows::remove_peer(int local) {
  retire([&](const Peer& one) { return one.local == local; });
}

// Whoever has found it began to read before, and is counted: the lock is between.
template <typename Matches>
void Windows::retire(Matches matches) {
  std::vector<std::shared_ptr<const void>> unread;  // unmapped after the lock
  const std::unique_lock lock(mutex_);
  for (Peer& one : peers_)
    if (matches(one)) retired_.push_back(std::move(one.mapping));
  std::erase_if(peers_, matches);
  if (reading_.load(std::memory_order_acquire) == 0) unread.swap(retired_);
  has_retired_.store(!retired_.empty(), std::memory_order_seq_cst);
  if (!retired_.empty() && reading_.load(std::memory_order_seq_cst) == 0) {  // who has ended meanwhile may not have seen that there is some
    unread.swap(retired_);
    has_retired_.store(false, std::memory_order_relaxed);
  }
}

void Windows::end_reading() {
  if (reading_.fetch_sub(1, std::memory_order_seq_cst) != 1 || !has_retired_.load(std::memory_order_seq_cst)) return;
  retire([](const Peer&) { return false; });
}

std::optional<Lent> Windows::find(const void* memory, std::uint64_t bytes, std::span<const int> readers) const {
  const std::shared_lock lock(mutex_);
  const auto* first = static_cast<const std::byte*>(memory);
  for (const Own& one : own_) {
    const std::less<const std::byte*> before;
    if (before(first, one.memory.data()) || before(one.memory.data() + one.memory.size(), first)) continue;
    const auto offset = static_cast<std::uint64_t>(first - one.memory.data());
    if (bytes <= one.memory.size() - offset && is_readable(one, readers)) return Lent{1, one.buffer, offset};
  }
  return std::nullopt;
}

const std::byte* Windows::address(int local, std::uint32_t buffer, std::uint64_t offset, std::uint64_t bytes) const {
  const std::shared_lock lock(mutex_);
  for (const Peer& one : peers_)
    if (one.local == local && one.buffer == buffer)
      return offset <= one.memory.size() && bytes <= one.memory.size() - offset ? one.memory.data() + offset : nullptr;
  return nullptr;
}

bool Windows::is_readable(const Own& own, std::span<const int> readers) {
  return !own.owner.expired() && std::includes(own.mapped_by.begin(), own.mapped_by.end(), readers.begin(), readers.end());
}

std::size_t Windows::own(std::span<const int> readers) const {
  const std::shared_lock lock(mutex_);
  return static_cast<std::size_t>(std::count_if(own_.begin(), own_.end(), [&](const Own& one) { return is_readable(one, readers); }));
}

std::size_t Windows::peers() const {
  const std::shared_lock lock(mutex_);
  return peers_.size();
}

GroupWindows::GroupWindows(Windows& windows, std::vector<int> locals, Rank self)
    : windows_(windows), locals_(locals), readers_(readers_of(std::move(locals), self)) {}

}  // namespace nexar::collective::direct
