#include "io/event_descriptor.h"

#include <cerrno>
#include <cstdint>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "io/kernel_error.h"

namespace nexar::io {

Result<EventDescriptor> EventDescriptor::open() {
  FileDescriptor fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (fd.get() < 0) return kernel_error("an event descriptor could not be made", errno);
  return EventDescriptor(std::move(fd));
}

void EventDescriptor::signal() {
  const std::uint64_t one = 1;
  const ssize_t written = ::write(fd_.get(), &one, sizeof one);
  NEXAR_ASSERT(written == sizeof one || errno == EAGAIN, "a counter that is full is readable already");
}

void EventDescriptor::ring() const {
  const std::uint64_t one = 1;
  static_cast<void>(::write(fd_.get(), &one, sizeof one) == sizeof one);
}

void EventDescriptor::clear() {
  std::uint64_t count = 0;
  const ssize_t taken = ::read(fd_.get(), &count, sizeof count);
  NEXAR_ASSERT(taken == sizeof count || errno == EAGAIN, "a counter can be read, or is zero");
}

}  // namespace nexar::io
