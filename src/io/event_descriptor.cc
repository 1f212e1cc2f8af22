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
  NEXAR_ASSERT(written == sizeof one, "a counter that is signalled once takes it");
}

}  // namespace nexar::io
