#include "nexar/shared_buffer.h"

#include "io/lent_memory.h"

namespace nexar {

SharedBuffer::SharedBuffer() noexcept = default;
SharedBuffer::SharedBuffer(std::shared_ptr<io::LentMemory> memory) noexcept : memory_(std::move(memory)) {}
SharedBuffer::SharedBuffer(SharedBuffer&& other) noexcept = default;
SharedBuffer& SharedBuffer::operator=(SharedBuffer&& other) noexcept = default;
SharedBuffer::~SharedBuffer() = default;

void* SharedBuffer::data() const { return memory_ == nullptr ? nullptr : memory_->bytes().data(); }

std::uint64_t SharedBuffer::size() const { return memory_ == nullptr ? 0 : memory_->bytes().size(); }

Result<SharedBuffer> alloc_shared(std::uint64_t bytes) {
  auto memory = io::LentMemory::create(bytes);
  if (!memory) return std::move(memory).error();
  return SharedBuffer(*std::move(memory));
}

}  // namespace nexar
