#include "io/lent_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>

#include <fmt/format.h>

#include "io/kernel_error.h"

// Linux 5.1; older C libraries do not name it.
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace nexar::io {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;

// What the kernel says it could give without taking it from anybody; everything when it does not say.
std::uint64_t available_bytes() {
  std::ifstream facts("/proc/meminfo");
  for (std::string line; std::getline(facts, line);)
    if (line.starts_with("MemAvailable:")) return std::strtoull(line.c_str() + 13, nullptr, 10) * 1024;
  return UINT64_MAX;
}

Error not_to_be_had(std::size_t bytes, int number) {
  if (number == ENOSPC || number == ENOMEM)
    return Error(ErrorCode::kOverloaded, fmt::format("the host has no {} bytes for shared memory", bytes));
  return kernel_error(fmt::format("cannot make {} bytes of shared memory", bytes), number);
}

// Where lent memory is in this process, as the heap knows where its blocks are: calls are given addresses.
class Places {
 public:
  void add(const std::shared_ptr<LentMemory>& memory) {
    const std::unique_lock lock(mutex_);
    places_.emplace(memory->bytes().data(), memory);
    count_.store(places_.size(), std::memory_order_relaxed);
  }

  // Before the addresses can be used for something else.
  void remove(const std::byte* first) {
    const std::unique_lock lock(mutex_);
    places_.erase(first);
    count_.store(places_.size(), std::memory_order_relaxed);
    freed_.fetch_add(1, std::memory_order_relaxed);
  }

  // Whoever asks has the memory from whoever made it, and so sees the count that includes it.
  std::shared_ptr<LentMemory> containing(const std::byte* byte) const {
    if (count_.load(std::memory_order_relaxed) == 0) return nullptr;
    std::shared_ptr<LentMemory> memory;  // outlives the lock: it may be the last that holds the memory
    const std::shared_lock lock(mutex_);
    const auto after = places_.upper_bound(byte);
    if (after != places_.begin()) memory = std::prev(after)->second.lock();
    const bool contains = memory != nullptr && byte < memory->bytes().data() + memory->bytes().size();
    return contains ? memory : nullptr;
  }

  std::uint64_t freed() const { return freed_.load(std::memory_order_relaxed); }

 private:
  mutable std::shared_mutex mutex_;
  std::map<const std::byte*, std::weak_ptr<LentMemory>, std::less<>> places_;
  std::atomic<std::size_t> count_ = 0;
  std::atomic<std::uint64_t> freed_ = 0;
};

// Never destroyed: a buffer may be a global.
Places& lent_places() {
  static Places& places = *new Places;
  return places;
}

}  // namespace

Result<std::shared_ptr<LentMemory>> LentMemory::create(std::size_t bytes) {
  if (bytes == 0) return Error(ErrorCode::kInvalidArgument, "shared memory of no bytes");
  // The kernel would not refuse: it would end other processes to make room.
  if (bytes > available_bytes()) return not_to_be_had(bytes, ENOMEM);
  FileDescriptor fd(memfd_create("nexar buffer", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return kernel_error("cannot make shared memory", errno);
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return not_to_be_had(bytes, errno);
  // Taken now: memory that the host does not have would be a signal later.
  if (const int failed = posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes)); failed != 0) return not_to_be_had(bytes, failed);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return not_to_be_had(bytes, errno);
  std::shared_ptr<LentMemory> lent(new LentMemory(std::move(fd), {static_cast<std::byte*>(memory), bytes}));
  if (fcntl(lent->fd(), F_ADD_SEALS, kSeals) != 0) return kernel_error("cannot seal shared memory", errno);
  lent_places().add(lent);
  return lent;
}

LentMemory::~LentMemory() {
  lent_places().remove(bytes_.data());
  munmap(bytes_.data(), bytes_.size());
}

std::shared_ptr<LentMemory> LentMemory::containing(const void* byte) {
  return lent_places().containing(static_cast<const std::byte*>(byte));
}

std::uint64_t LentMemory::freed() { return lent_places().freed(); }

Result<std::unique_ptr<BorrowedMemory>> BorrowedMemory::map(FileDescriptor fd, std::size_t bytes) {
  struct stat facts {};
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (fstat(fd.get(), &facts) != 0 || seals == -1) return kernel_error("cannot look at a peer's shared memory", errno);
  if ((seals & kSeals) != kSeals) return Error(ErrorCode::kRefused, "a peer's shared memory is not sealed");
  if (bytes == 0 || static_cast<std::uint64_t>(facts.st_size) != bytes)
    return Error(ErrorCode::kRefused, fmt::format("a peer's shared memory has {} bytes instead of {}", facts.st_size, bytes));
  const void* memory = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return kernel_error(fmt::format("cannot map {} bytes of a peer's memory", bytes), errno);
  return std::unique_ptr<BorrowedMemory>(new BorrowedMemory({static_cast<const std::byte*>(memory), bytes}));
}

BorrowedMemory::~BorrowedMemory() { munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()); }

}  // namespace nexar::io
