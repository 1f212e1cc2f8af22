// A descriptor that becomes readable when it is told to.
#pragma once

#include <utility>

#include "io/file_descriptor.h"
#include "nexar/result.h"

namespace nexar::io {

class EventDescriptor {
 public:
  static Result<EventDescriptor> open();

  int fd() const { return fd_.get(); }

  // From here on readable. Thread: any.
  void signal();

  // Not readable any more, until it is told again. Thread: any.
  void clear();

  // One that another process made and passed on, and may have broken meanwhile: only for ring(), which signals it if that can be done.
  static EventDescriptor adopt(FileDescriptor fd) { return EventDescriptor(std::move(fd)); }
  void ring() const;

 private:
  explicit EventDescriptor(FileDescriptor fd) : fd_(std::move(fd)) {}

  FileDescriptor fd_;
};

}  // namespace nexar::io
