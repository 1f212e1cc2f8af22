// Memory that several processes of one host have in common.
#pragma once

#include <cstddef>
#include <memory>

#include "base/bytes.h"
#include "io/file_descriptor.h"
#include "nexar/result.h"

namespace nexar::io {

// A segment without a name: whoever gets its descriptor can map it, and it goes with the last process that has it, however that ends. It
// can neither shrink nor grow, so that no access behind a peer's back becomes a signal.
//
// Within a process one segment is mapped once, however many descriptors of it there are. Thread: any.
class SharedMemory {
 public:
  // `bytes` zeros, all of them there from the beginning. kOverloaded when there is not so much memory.
  static Result<std::shared_ptr<SharedMemory>> create(std::size_t bytes);

  // The segment of a descriptor that a peer passed. kRefused unless it has exactly `bytes` bytes and can never have fewer.
  static Result<std::shared_ptr<SharedMemory>> map(FileDescriptor fd, std::size_t bytes);

  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  base::ByteSpan bytes() const { return bytes_; }
  int fd() const { return fd_.get(); }

 private:
  SharedMemory(FileDescriptor fd, base::ByteSpan bytes) : fd_(std::move(fd)), bytes_(bytes) {}
  static Result<std::shared_ptr<SharedMemory>> map_once(FileDescriptor fd, std::size_t bytes);

  FileDescriptor fd_;
  base::ByteSpan bytes_;
};

}  // namespace nexar::io
