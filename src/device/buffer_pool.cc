#include "nexar/buffer_pool.h"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace nexar {
namespace {

constexpr std::size_t kAlignment = 4096;  // a page: what devices pin, and the smallest block
constexpr std::size_t kBlockMax = std::size_t{1} << 62;

struct FreeAligned {
  void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{kAlignment}); }
};

}  // namespace

struct BufferPool::Block {
  std::unique_ptr<std::byte, FreeAligned> memory;
  std::size_t bytes = 0;
  std::vector<MemoryRegistration> registrations;  // released before the memory: the last member goes first

  // Whether `adapter` knows the memory from here on.
  Result<void> register_at(const std::shared_ptr<DeviceAdapter>& adapter) {
    for (const MemoryRegistration& known : registrations)
      if (known.adapter() == adapter) return {};
    Result<MemoryRegistration> made = MemoryRegistration::make(adapter, memory.get(), bytes);
    if (!made) return std::move(made).error();
    registrations.push_back(*std::move(made));
    return {};
  }
};

struct BufferPool::State {
  mutable std::mutex mutex;
  std::map<std::size_t, std::vector<std::unique_ptr<Block>>> kept;  // by size; a size without blocks has no entry
  Counters counters;

  std::unique_ptr<Block> take_kept(std::size_t bytes) {
    const auto found = kept.find(bytes);
    if (found == kept.end()) return nullptr;
    std::unique_ptr<Block> block = std::move(found->second.back());
    found->second.pop_back();
    if (found->second.empty()) kept.erase(found);
    counters.kept -= block->bytes;
    return block;
  }

  // Takes out kept blocks, the largest first, until `bytes` more fit the budget; the caller frees them without the mutex.
  std::vector<std::unique_ptr<Block>> make_room(std::size_t bytes) {
    std::vector<std::unique_ptr<Block>> out;
    while (!kept.empty() && counters.in_use + counters.kept + bytes > counters.budget) out.push_back(take_kept(kept.rbegin()->first));
    return out;
  }
};

BufferPool::Lease::Lease(std::shared_ptr<BufferPool> pool, std::unique_ptr<Block> block, std::size_t bytes)
    : pool_(std::move(pool)), block_(std::move(block)), bytes_(bytes) {}
BufferPool::Lease::Lease() noexcept = default;
BufferPool::Lease::Lease(Lease&& other) noexcept = default;

BufferPool::Lease& BufferPool::Lease::operator=(Lease&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(block_, other.block_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

BufferPool::Lease::~Lease() {
  if (block_ != nullptr) pool_->give_back(std::move(block_));
}

std::byte* BufferPool::Lease::data() const { return block_ == nullptr ? nullptr : block_->memory.get(); }

std::shared_ptr<BufferPool> BufferPool::make(std::uint64_t budget) { return std::shared_ptr<BufferPool>(new BufferPool(budget)); }

BufferPool::BufferPool(std::uint64_t budget) : state_(std::make_unique<State>()) { state_->counters.budget = budget; }
BufferPool::~BufferPool() = default;

Result<BufferPool::Lease> BufferPool::take(std::size_t bytes, const std::shared_ptr<DeviceAdapter>& adapter) {
  const std::size_t size = bytes > kBlockMax ? bytes : std::bit_ceil(std::max(bytes, kAlignment));
  std::vector<std::unique_ptr<Block>> evicted;  // freed last, without the mutex
  std::unique_ptr<Block> block;
  {
    const std::lock_guard lock(state_->mutex);
    Counters& counters = state_->counters;
    if (size > counters.budget || counters.in_use > counters.budget - size) {
      ++counters.refused;
      return Error(ErrorCode::kOverloaded, fmt::format("{} bytes do not fit a pool of {}, of which {} are in use: raise memory_budget",
                                                       size, counters.budget, counters.in_use));
    }
    block = state_->take_kept(size);
    if (block != nullptr)
      ++counters.reused;
    else
      evicted = state_->make_room(size);
    ++counters.taken;
    counters.in_use += size;
    counters.peak = std::max(counters.peak, counters.in_use);
  }
  evicted.clear();
  if (block == nullptr) {
    block = std::make_unique<Block>();
    block->bytes = size;
    block->memory.reset(static_cast<std::byte*>(::operator new (size, std::align_val_t{kAlignment}, std::nothrow)));
  }
  Result<void> usable;
  if (block->memory == nullptr)
    usable = Error(ErrorCode::kOverloaded, fmt::format("the system has no {} bytes of memory to give", size));
  else if (adapter != nullptr)
    usable = block->register_at(adapter);
  if (!usable) {
    give_back(std::move(block));
    return std::move(usable).error();
  }
  return Lease(shared_from_this(), std::move(block), bytes);
}

void BufferPool::give_back(std::unique_ptr<Block> block) {
  const std::lock_guard lock(state_->mutex);
  state_->counters.in_use -= block->bytes;
  if (block->memory == nullptr) return;
  state_->counters.kept += block->bytes;
  state_->kept[block->bytes].push_back(std::move(block));
}

void BufferPool::trim() {
  decltype(state_->kept) out;
  const std::lock_guard lock(state_->mutex);
  out.swap(state_->kept);
  state_->counters.kept = 0;
}

BufferPool::Counters BufferPool::counters() const {
  const std::lock_guard lock(state_->mutex);
  return state_->counters;
}

}  // namespace nexar
