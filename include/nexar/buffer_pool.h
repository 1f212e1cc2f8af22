// Host memory that is used again: behind staging, buckets and compressed contributions.
//
//   auto pool = BufferPool::make(256 << 20);
//   Result<BufferPool::Lease> slot = pool->take(bytes, adapter);
//
// What is lent and what is kept for the next call stay within the budget together. Nodes of one process share a pool by being given the
// same one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "nexar/device.h"
#include "nexar/export.h"
#include "nexar/result.h"

namespace nexar {

// Thread: any, several at once. Leases keep their pool alive.
class NEXAR_API BufferPool : public std::enable_shared_from_this<BufferPool> {
  struct State;
  struct Block;

 public:
  struct Counters {
    std::uint64_t budget = 0;   // the most bytes of in_use and kept together
    std::uint64_t in_use = 0;   // bytes that are lent
    std::uint64_t kept = 0;     // bytes that wait for their next use
    std::uint64_t peak = 0;     // the most that in_use has been
    std::uint64_t taken = 0;    // leases given out
    std::uint64_t reused = 0;   // of these, from what was kept
    std::uint64_t refused = 0;  // requests that did not fit the budget
  };

  // Memory that is lent, aligned to 4096 bytes, so that a device can pin it. Move-only; goes back with the handle.
  class NEXAR_API Lease {
   public:
    Lease() noexcept;
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&& other) noexcept;
    ~Lease();

    std::byte* data() const;
    std::size_t bytes() const { return bytes_; }  // as asked for

   private:
    friend class BufferPool;
    Lease(std::shared_ptr<BufferPool> pool, std::unique_ptr<Block> block, std::size_t bytes);

    std::shared_ptr<BufferPool> pool_;
    std::unique_ptr<Block> block_;
    std::size_t bytes_ = 0;
  };

  static std::shared_ptr<BufferPool> make(std::uint64_t budget);
  ~BufferPool();

  // Memory for `bytes` bytes; what is in it means nothing. Blocks are powers of two, so it may take up to twice as much of the budget.
  // With an adapter, registered there: once for each block, as long as the pool keeps it. kOverloaded when the budget does not allow it
  // now, with the numbers; what the adapter says when it refuses.
  Result<Lease> take(std::size_t bytes, const std::shared_ptr<DeviceAdapter>& adapter = nullptr);

  // Gives back to the system everything that is kept.
  void trim();

  Counters counters() const;

 private:
  explicit BufferPool(std::uint64_t budget);
  void give_back(std::unique_ptr<Block> block);

  std::unique_ptr<State> state_;
};

}  // namespace nexar
