#include <cerrno>

#include <sys/socket.h>

#include <fmt/format.h>

#include "io/kernel_error.h"
#include "io/socket_options.h"
#include "io/stream_options.h"
#include "io/stream_socket.h"

namespace nexar::io {
namespace {

// The connection was gone, or its network was, before it was accepted: the next one may be fine.
bool is_about_the_peer(int number) {
  switch (number) {
    case ECONNABORTED:
    case EINTR:
    case EPERM:
    case EPROTO:
    case ENOPROTOOPT:
    case ENETDOWN:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case ENETUNREACH: return true;
    default: return false;
  }
}

}  // namespace

Result<StreamListener> StreamListener::listen(const Address& local, const StreamOptions& options) {
  Result<OpenedTcp> opened = open_tcp(local, options);
  if (!opened) return std::move(opened).error();
  const int fd = opened->fd.get();
  // A port whose last connections are still fading away can be used again at once.
  if (!set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1)) return kernel_error("cannot set SO_REUSEADDR", errno);
  if (Result<void> bound = bind_socket(fd, local); !bound) return std::move(bound).error();
  if (::listen(fd, kBacklog) != 0) return kernel_error(fmt::format("cannot listen on {}", local.to_string()), errno);
  const std::string name = bound_address(fd).to_string();
  return StreamListener(std::move(opened->fd), name, std::move(opened->bbr));
}

Result<StreamListener> StreamListener::listen_unix(std::string_view name, const StreamOptions& options, int backlog) {
  const Result<UnixName> address = UnixName::make(name);
  if (!address) return address.error();
  Result<FileDescriptor> fd = open_unix(options);
  if (!fd) return fd.error();
  if (bind(fd->get(), address->data(), address->length) != 0) return kernel_error(fmt::format("cannot bind {}", unix_text(name)), errno);
  if (::listen(fd->get(), backlog) != 0) return kernel_error(fmt::format("cannot listen on {}", unix_text(name)), errno);
  return StreamListener(*std::move(fd), unix_text(name));
}

Result<std::optional<StreamSocket>> StreamListener::accept() {
  // Each pass takes one waiting connection off the backlog, so this ends.
  for (;;) {
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    FileDescriptor fd(accept4(fd_.get(), reinterpret_cast<sockaddr*>(&peer), &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd) {
      const Address from = Address::from(reinterpret_cast<const sockaddr*>(&peer), length);
      return std::optional(StreamSocket(std::move(fd), from ? from.to_string() : "a client of " + name_, bbr_));
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::optional<StreamSocket>();
    if (!is_about_the_peer(errno)) return kernel_error(fmt::format("cannot accept on {}", name_), errno);
  }
}

Address StreamListener::local_address() const { return bound_address(fd_.get()); }

}  // namespace nexar::io
