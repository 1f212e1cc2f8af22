#include "io/file_descriptor.h"

#include <cerrno>

#include <unistd.h>

#include "base/assert.h"

namespace nexar::io {

void FileDescriptor::reset(int fd) {
  const int old = std::exchange(fd_, fd);
  if (old < 0) return;
  // Linux has let go of the descriptor also when close is interrupted or reports what an earlier write did: trying again would close
  // somebody else's. EBADF means that this was somebody else's already.
  const int saved = errno;
  NEXAR_ASSERT(close(old) == 0 || errno != EBADF, "a descriptor is closed by its owner, once");
  errno = saved;  // an error path closes before it reports
}

}  // namespace nexar::io
