#include "io/stream_socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "base/assert.h"
#include "io/kernel_error.h"
#include "io/socket_options.h"
#include "io/stream_options.h"

namespace nexar::io {

Result<StreamSocket> StreamSocket::connect(const Address& to, const Options& options) {
  Result<OpenedTcp> opened = open_tcp(to, options);
  if (!opened) return std::move(opened).error();
  StreamSocket made(std::move(opened->fd), to.to_string(), std::move(opened->bbr));
  if (options.local) {
    if (Result<void> bound = bind_socket(made.fd(), options.local); !bound) return std::move(bound).error();
  }
  if (::connect(made.fd(), to.data(), to.size()) != 0 && errno != EINPROGRESS && errno != EINTR)
    return made.failed("cannot connect to", errno);
  return made;
}

Result<StreamSocket> StreamSocket::connect_unix(std::string_view name, const Options& options) {
  const Result<UnixName> address = UnixName::make(name);
  if (!address) return address.error();
  Result<FileDescriptor> fd = open_unix(options);
  if (!fd) return fd.error();
  StreamSocket made(*std::move(fd), unix_text(name));
  if (::connect(made.fd(), address->data(), address->length) == 0) return made;
  if (errno != EAGAIN) return made.failed("cannot connect to", errno);
  return Error(ErrorCode::kOverloaded, fmt::format("cannot connect to {}: too many wait to be accepted there", made.peer()));
}

Result<std::pair<StreamSocket, StreamSocket>> StreamSocket::pair() {
  std::array<int, 2> fds{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()) != 0)
    return kernel_error("cannot open a pair of sockets", errno);
  return std::pair(StreamSocket(FileDescriptor(fds[0]), "unix:pair"), StreamSocket(FileDescriptor(fds[1]), "unix:pair"));
}

Result<bool> StreamSocket::finish_connect() {
  const std::optional<int> number = get_option(fd(), SOL_SOCKET, SO_ERROR);
  if (!number) return failed("cannot ask for the state of the connection to", errno);
  if (*number != 0) return failed("cannot connect to", *number);
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  if (getpeername(fd(), reinterpret_cast<sockaddr*>(&peer), &length) == 0) return true;
  if (errno == ENOTCONN) return false;
  return failed("cannot connect to", errno);
}

Error StreamSocket::failed(std::string_view what, int number) const { return kernel_error(fmt::format("{} {}", what, peer_), number); }

// What a system call returned. Zero bytes end a stream, because nobody asks for none.
Result<Transferred> StreamSocket::outcome(ssize_t count, std::string_view what) const {
  if (count > 0) return Transferred{Transferred::State::kOpen, static_cast<std::size_t>(count)};
  if (count == 0) return Transferred{Transferred::State::kClosed, 0};
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return Transferred{Transferred::State::kBlocked, 0};
  return failed(what, errno);
}

Result<Transferred> StreamSocket::read(std::span<const iovec> regions) {
  NEXAR_ASSERT(!regions.empty() && regions.size() <= kRegionsMax, "a read has 1 to kRegionsMax regions");
  return outcome(readv(fd(), regions.data(), static_cast<int>(regions.size())), "cannot read from");
}

// Not MSG_MORE: any acknowledgement that comes lets go what that holds back.
void StreamSocket::hold_back(bool held) { set_option(fd(), IPPROTO_TCP, TCP_CORK, held ? 1 : 0); }

Result<Transferred> StreamSocket::write(std::span<const iovec> regions) {
  NEXAR_ASSERT(!regions.empty() && regions.size() <= kRegionsMax, "a write has 1 to kRegionsMax regions");
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(regions.data());
  message.msg_iovlen = regions.size();
  return outcome(sendmsg(fd(), &message, MSG_NOSIGNAL), "cannot write to");
}

Result<Transferred> StreamSocket::read(base::ByteSpan bytes) {
  const iovec whole = region(bytes);
  return read(std::span(&whole, 1));
}

Result<Transferred> StreamSocket::write(base::ByteView bytes) {
  const iovec whole = region(bytes);
  return write(std::span(&whole, 1));
}

Result<void> StreamSocket::shutdown_write() {
  if (shutdown(fd(), SHUT_WR) != 0) return failed("cannot end the stream to", errno);
  return {};
}

Result<PeerCredentials> StreamSocket::peer_credentials() const {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (getsockopt(fd(), SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return failed("cannot learn who is", errno);
  return PeerCredentials{credentials.pid, credentials.uid, credentials.gid};
}

Address StreamSocket::local_address() const { return bound_address(fd()); }
std::size_t StreamSocket::receive_buffer_bytes() const { return receive_buffer(fd()); }
std::size_t StreamSocket::send_buffer_bytes() const { return send_buffer(fd()); }

std::string StreamSocket::congestion_control() const { return io::congestion_control(fd()); }

bool StreamSocket::return_to_bbr() { return !bbr_.empty() && use_congestion_control(fd(), std::exchange(bbr_, {})); }

void StreamSocket::resize_receive_buffer(std::size_t bytes) { set_receive_buffer(fd(), bytes); }
void StreamSocket::resize_send_buffer(std::size_t bytes) { set_send_buffer(fd(), bytes); }

bool StreamSocket::widen_send_buffer(std::size_t bytes) { return io::widen_send_buffer(fd(), bytes); }

std::size_t StreamSocket::unacknowledged_bytes() const {
  int bytes = 0;
  return ioctl(fd(), SIOCOUTQ, &bytes) == 0 ? static_cast<std::size_t>(bytes) : 0;
}

}  // namespace nexar::io
