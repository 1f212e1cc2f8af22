#include "io/process_memory.h"

#include <array>

#include <sys/uio.h>

#include "base/assert.h"

namespace nexar::io {

bool ProcessMemory::read(std::uint64_t address, std::span<const base::ByteSpan> into) const {
  NEXAR_ASSERT(into.size() <= kRegionsMax, "a read has a bounded number of regions");
  if (process_ <= 0) return false;  // it is in no process namespace that we see
  std::array<iovec, kRegionsMax + 1> local;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < into.size(); ++i) {
    local[i] = {into[i].data(), into[i].size()};
    bytes += into[i].size();
  }
  std::uint64_t word = 0;
  local[into.size()] = {&word, sizeof word};
  const std::array<iovec, 2> remote = {
      iovec{reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), bytes},
      iovec{reinterpret_cast<void*>(static_cast<std::uintptr_t>(proof_.address)), sizeof word},
  };
  const ssize_t count = process_vm_readv(process_, local.data(), into.size() + 1, remote.data(), remote.size(), 0);
  return count == static_cast<ssize_t>(bytes + sizeof word) && word == proof_.word;
}

}  // namespace nexar::io
