// Memory that other processes of the host may read in place, and can never write.
//
//   SharedBuffer gradients = alloc_shared(64 << 20).value();
//   std::span<float> values = gradients.as<float>();
//
// Collectives between ranks of one host copy what a rank gives into memory that all of them share. From 32 MiB up what lies in a
// SharedBuffer, anywhere inside it, is read in place instead: the first such call gives the buffer to the other ranks of the host, and
// those that begin when all of the group have mapped it copy nothing in. Each rank uses one or not, as it likes; nobody asks for anything.
// Everywhere else it is memory like any other. Node::counters().lending says what is lent.
//
// It is freed like any other memory, when no operation uses it any more, and is unmapped by the others soon after. A rank lends at most 256
// at a time; more are copied. Other ranks' mappings cost no memory of their own, and no budget.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "nexar/data_type.h"
#include "nexar/export.h"
#include "nexar/result.h"

namespace nexar {

namespace io {
class LentMemory;
}

// Move-only. The memory begins at a page, is zero at first, and goes back to the system with the last process that has it mapped: the
// owner's death leaves nothing behind. Thread: any; its bytes are the caller's business.
class NEXAR_API SharedBuffer {
 public:
  SharedBuffer() noexcept;  // of no bytes
  explicit SharedBuffer(std::shared_ptr<io::LentMemory> memory) noexcept;
  SharedBuffer(SharedBuffer&& other) noexcept;
  SharedBuffer& operator=(SharedBuffer&& other) noexcept;
  ~SharedBuffer();

  void* data() const;
  std::uint64_t size() const;  // bytes

  // All of it as elements; what is left at the end, less than one, is not in it.
  template <Element T>
  std::span<T> as() const {
    return {static_cast<T*>(data()), static_cast<std::size_t>(size() / sizeof(T))};
  }

  // For the runtime, which gives the memory to peers.
  const std::shared_ptr<io::LentMemory>& memory() const { return memory_; }

 private:
  std::shared_ptr<io::LentMemory> memory_;
};

// kOverloaded when the host has not so much memory, kInvalidArgument for a size of 0.
NEXAR_API Result<SharedBuffer> alloc_shared(std::uint64_t bytes);

}  // namespace nexar
