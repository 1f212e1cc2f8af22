#include "io/shared_memory.h"

#include <cerrno>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include "base/units.h"
#include "io/kernel_error.h"

namespace nexar::io {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// The segments that this process has mapped, by the kernel's numbers for them. Tools that watch threads see addresses: two mappings of one
// segment would hide from them what two nodes of one process do to each other.
struct Mapped {
  std::mutex mutex;
  std::map<std::pair<dev_t, ino_t>, std::weak_ptr<SharedMemory>> segments;
};

Mapped& mapped() {
  static auto& table = *new Mapped();  // never destroyed: threads may outlive main
  return table;
}

// What can be had without anybody's end. fallocate() asks for more until the kernel kills processes.
std::size_t available_bytes() {
  std::ifstream lines("/proc/meminfo");
  for (std::string name; lines >> name;) {
    std::size_t kibibytes = 0;
    if (name == "MemAvailable:" && lines >> kibibytes) return kibibytes << 10;
    lines.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::numeric_limits<std::size_t>::max();  // not told: the kernel decides
}

}  // namespace

Result<std::shared_ptr<SharedMemory>> SharedMemory::create(std::size_t bytes) {
  if (const std::size_t available = available_bytes(); bytes > available)
    return Error(ErrorCode::kOverloaded, fmt::format("cannot allocate {} of shared memory: the host has {} left", base::format_size(bytes),
                                                     base::format_size(available)));
  FileDescriptor fd(memfd_create("nexar", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return kernel_error("cannot create shared memory", errno);
  if (fallocate(fd.get(), 0, 0, static_cast<off_t>(bytes)) != 0) {
    const Error refused = kernel_error(fmt::format("cannot allocate {} of shared memory", base::format_size(bytes)), errno);
    return Error(ErrorCode::kOverloaded, refused.sentence());
  }
  if (fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return kernel_error("cannot seal shared memory", errno);
  return map_once(std::move(fd), bytes);
}

Result<std::shared_ptr<SharedMemory>> SharedMemory::map(FileDescriptor fd, std::size_t bytes) {
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals)
    return Error(ErrorCode::kRefused, "a descriptor is no memory that is sealed against resizing");
  return map_once(std::move(fd), bytes);
}

Result<std::shared_ptr<SharedMemory>> SharedMemory::map_once(FileDescriptor fd, std::size_t bytes) {
  struct stat facts {};
  if (fstat(fd.get(), &facts) != 0) return kernel_error("cannot look at shared memory", errno);
  if (facts.st_size < 0 || static_cast<std::size_t>(facts.st_size) != bytes)
    return Error(ErrorCode::kRefused, fmt::format("shared memory has {} bytes, not {}", facts.st_size, bytes));

  Mapped& table = mapped();
  const std::lock_guard lock(table.mutex);
  std::weak_ptr<SharedMemory>& known = table.segments[{facts.st_dev, facts.st_ino}];
  if (std::shared_ptr<SharedMemory> memory = known.lock()) return memory;
  void* start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (start == MAP_FAILED) return kernel_error(fmt::format("cannot map {} of shared memory", base::format_size(bytes)), errno);
  std::shared_ptr<SharedMemory> memory(new SharedMemory(std::move(fd), {static_cast<std::byte*>(start), bytes}));
  known = memory;
  return memory;
}

SharedMemory::~SharedMemory() {
  munmap(bytes_.data(), bytes_.size());
  Mapped& table = mapped();
  const std::lock_guard lock(table.mutex);
  std::erase_if(table.segments, [](const auto& entry) { return entry.second.expired(); });
}

}  // namespace nexar::io
