// Memory that one process writes and others of its host may read in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "io/file_descriptor.h"
#include "nexar/result.h"

namespace nexar::io {

// The owner's side. Sealed when it is made: the mapping here is the only one that can ever write, and the size never changes, so that
// reading it is never a signal. Thread: any.
class LentMemory : public std::enable_shared_from_this<LentMemory> {
 public:
  // `bytes` zeros, all of them there from the beginning. kOverloaded when there is not so much memory, kInvalidArgument for none.
  static Result<std::shared_ptr<LentMemory>> create(std::size_t bytes);

  // The memory of this process in which that byte lies; null when it lies in none. Costs nothing while there is none.
  static std::shared_ptr<LentMemory> containing(const void* byte);

  // How many have been freed in this process: who keeps track of them looks again when this has changed.
  static std::uint64_t freed();

  ~LentMemory();
  LentMemory(const LentMemory&) = delete;
  LentMemory& operator=(const LentMemory&) = delete;

  base::ByteSpan bytes() const { return bytes_; }
  int fd() const { return fd_.get(); }  // to be passed to readers

 private:
  LentMemory(FileDescriptor fd, base::ByteSpan bytes) : fd_(std::move(fd)), bytes_(bytes) {}

  FileDescriptor fd_;
  base::ByteSpan bytes_;
};

// A reader's side. Thread: any.
class BorrowedMemory {
 public:
  // What a descriptor holds that a peer passed. kRefused unless it has exactly `bytes` bytes, can never have fewer, and can be written by
  // nobody but whoever had mapped it when it was sealed.
  static Result<std::unique_ptr<BorrowedMemory>> map(FileDescriptor fd, std::size_t bytes);

  ~BorrowedMemory();
  BorrowedMemory(const BorrowedMemory&) = delete;
  BorrowedMemory& operator=(const BorrowedMemory&) = delete;

  base::ByteView bytes() const { return bytes_; }

 private:
  explicit BorrowedMemory(base::ByteView bytes) : bytes_(bytes) {}

  base::ByteView bytes_;
};

}  // namespace nexar::io
