#include "io/network_namespace.h"

#include <cerrno>

#include <fcntl.h>
#include <sched.h>

#include <fmt/format.h>

#include "io/file_descriptor.h"
#include "io/kernel_error.h"

namespace nexar::io {

Result<void> in_network_namespace(const std::string& path, const std::function<Result<void>()>& work) {
  if (path.empty()) return work();
  const FileDescriptor home(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!home) return kernel_error("cannot open this thread's network namespace", errno);
  const FileDescriptor there(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!there) return kernel_error(fmt::format("cannot open the network namespace {}", path), errno);
  if (setns(there.get(), CLONE_NEWNET) != 0) return kernel_error(fmt::format("cannot enter the network namespace {}", path), errno);

  Result<void> done = work();
  if (setns(home.get(), CLONE_NEWNET) == 0) return done;
  Error stuck = kernel_error(fmt::format("this thread cannot leave the network namespace {}", path), errno);
  return done ? stuck : std::move(stuck).with_cause(done.error());
}

}  // namespace nexar::io
