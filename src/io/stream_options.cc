#include "io/stream_options.h"

#include <cerrno>
#include <cstddef>
#include <cstring>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <fmt/format.h>

#include "io/kernel_error.h"
#include "io/socket_options.h"

namespace nexar::io {
namespace {

void set_buffers(int fd, const StreamOptions& options) {
  if (options.receive_buffer_bytes > 0) set_receive_buffer(fd, options.receive_buffer_bytes);
  if (options.send_buffer_bytes > 0) set_send_buffer(fd, options.send_buffer_bytes);
}

}  // namespace

Result<UnixName> UnixName::make(std::string_view name) {
  if (name.empty() || name.size() > StreamSocket::kNameBytesMax) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("a unix socket's name has 1 to {} bytes, '{}' has {}", StreamSocket::kNameBytesMax, name, name.size()));
  }
  UnixName made;
  static_assert(sizeof made.address.sun_path == StreamSocket::kNameBytesMax + 1);
  made.address.sun_family = AF_UNIX;
  std::memcpy(made.address.sun_path + 1, name.data(), name.size());  // after a zero byte: abstract
  made.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return made;
}

std::string unix_text(std::string_view name) { return fmt::format("unix:@{}", name); }

Result<FileDescriptor> open_tcp(const Address& family_of, const StreamOptions& options) {
  Result<FileDescriptor> fd = open_socket(family_of, SOCK_STREAM);
  if (!fd) return fd;
  set_buffers(fd->get(), options);
  if (!set_option(fd->get(), IPPROTO_TCP, TCP_NODELAY, options.no_delay ? 1 : 0)) return kernel_error("cannot set TCP_NODELAY", errno);
  const std::string& control = options.congestion_control;
  if (!control.empty() && setsockopt(fd->get(), IPPROTO_TCP, TCP_CONGESTION, control.data(), static_cast<socklen_t>(control.size())) != 0) {
    return kernel_error(fmt::format("cannot use the congestion control '{}'", control), errno);
  }
  return fd;
}

Result<FileDescriptor> open_unix(const StreamOptions& options) {
  FileDescriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return kernel_error("cannot open a unix socket", errno);
  set_buffers(fd.get(), options);
  return fd;
}

}  // namespace nexar::io
