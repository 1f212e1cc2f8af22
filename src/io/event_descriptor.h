// A descriptor that becomes readable when it is told to.
#pragma once

#include "io/file_descriptor.h"
#include "nexar/result.h"

namespace nexar::io {

class EventDescriptor {
 public:
  static Result<EventDescriptor> open();

  int fd() const { return fd_.get(); }

  // From here on readable. Thread: any.
  void signal();

 private:
  explicit EventDescriptor(FileDescriptor fd) : fd_(std::move(fd)) {}

  FileDescriptor fd_;
};

}  // namespace nexar::io
