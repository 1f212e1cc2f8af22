// Owns a file descriptor.
#pragma once

#include <utility>

namespace nexar::io {

// Closes what it owns. Move-only; what was moved from owns nothing.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}  // takes over; -1 is none

  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~FileDescriptor() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

  // Gives it to the caller, who closes it.
  int release() { return std::exchange(fd_, -1); }

  // Closes it and takes over `fd`.
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

}  // namespace nexar::io
