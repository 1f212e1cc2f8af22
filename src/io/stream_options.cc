#include "io/stream_options.h"

#include <array>
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

// Returns what was left. Only before a connection is made: BBR has the kernel pace what it sends, with a timer for every few segments, and
// the kernel goes on pacing when another congestion control takes over.
std::string leave_bbr(int fd) {
  const std::string name = congestion_control(fd);
  const bool left = name.starts_with("bbr") && (use_congestion_control(fd, "cubic") || use_congestion_control(fd, "reno"));
  return left ? name : std::string();
}

}  // namespace

std::string congestion_control(int fd) {
  std::array<char, 64> name{};
  socklen_t length = name.size() - 1;
  if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), &length) != 0) return {};
  return name.data();
}

bool use_congestion_control(int fd, std::string_view name) {
  return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) == 0;
}

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

Result<OpenedTcp> open_tcp(const Address& family_of, const StreamOptions& options) {
  Result<FileDescriptor> fd = open_socket(family_of, SOCK_STREAM);
  if (!fd) return std::move(fd).error();
  set_buffers(fd->get(), options);
  if (!set_option(fd->get(), IPPROTO_TCP, TCP_NODELAY, options.no_delay ? 1 : 0)) return kernel_error("cannot set TCP_NODELAY", errno);
  OpenedTcp opened{*std::move(fd)};
  if (options.without_bbr) opened.bbr = leave_bbr(opened.fd.get());
  return opened;
}

Result<FileDescriptor> open_unix(const StreamOptions& options) {
  FileDescriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return kernel_error("cannot open a unix socket", errno);
  set_buffers(fd.get(), options);
  return fd;
}

}  // namespace nexar::io
