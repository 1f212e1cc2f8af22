#include "tcp_socket.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace nexar::bench {
namespace {

using AddressInfo = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

std::string where(const Options& options, std::uint16_t port) { return options.address + " port " + std::to_string(port); }

AddressInfo look_up(const Options& options, std::uint16_t port) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int problem = getaddrinfo(options.address.c_str(), std::to_string(port).c_str(), &wanted, &found);
  if (problem != 0) throw Failure("'" + options.address + "' is no IP address: " + gai_strerror(problem));
  return {found, &freeaddrinfo};
}

bool set_int(int fd, int level, int name, int value) { return setsockopt(fd, level, name, &value, sizeof value) == 0; }

// Beyond the limit of the host where that is allowed; what is granted is reported.
void set_buffers(int fd, std::size_t bytes) {
  const int size = static_cast<int>(bytes);
  if (!set_int(fd, SOL_SOCKET, SO_SNDBUFFORCE, size)) set_int(fd, SOL_SOCKET, SO_SNDBUF, size);
  if (!set_int(fd, SOL_SOCKET, SO_RCVBUFFORCE, size)) set_int(fd, SOL_SOCKET, SO_RCVBUF, size);
}

void set_congestion(int fd, const Options& options) {
  std::string tried;
  for (const std::string& name : options.congestion) {
    if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) == 0) return;
    tried += (tried.empty() ? "" : ", ") + name + ": " + std::strerror(errno);
  }
  throw Failure("no congestion control of --congestion is permitted (" + tried + ")");
}

// Everything is set before the handshake: the window that a connection may ever have is agreed in it.
Descriptor open_socket(const Options& options, int family) {
  Descriptor fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) fail_with_errno("cannot open a TCP socket");
  set_buffers(fd.get(), options.socket_buffer_bytes);
  set_congestion(fd.get(), options);
  set_int(fd.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  return fd;
}

void make_non_blocking(int fd) {
  if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) fail_with_errno("cannot make a socket non-blocking");
}

// The kernel counts its own overhead in and reports twice what was asked for.
std::size_t buffer_of(int fd, int name) {
  int value = 0;
  socklen_t size = sizeof value;
  if (getsockopt(fd, SOL_SOCKET, name, &value, &size) != 0) fail_with_errno("cannot read the size of a socket buffer");
  return static_cast<std::size_t>(value) / 2;
}

std::uint16_t port_of(int fd) {
  sockaddr_in6 bound{};
  socklen_t size = sizeof bound;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) fail_with_errno("cannot learn the port");
  return ntohs(bound.sin6_port);  // at the same place for IPv4
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

void fail_with_errno(const std::string& what) { throw Failure(what + ": " + std::strerror(errno)); }

Listener listen_on(const Options& options) {
  const AddressInfo address = look_up(options, options.port);
  Descriptor fd = open_socket(options, address->ai_family);
  set_int(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (bind(fd.get(), address->ai_addr, address->ai_addrlen) != 0) fail_with_errno("cannot listen on " + where(options, options.port));
  if (listen(fd.get(), 1) != 0) fail_with_errno("cannot listen on " + where(options, options.port));
  const std::uint16_t port = port_of(fd.get());
  return {std::move(fd), port};
}

Descriptor accept_one(const Listener& listener) {
  int fd = -1;
  do fd = accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  while (fd < 0 && errno == EINTR);
  if (fd < 0) fail_with_errno("cannot accept the client");
  set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  return Descriptor(fd);
}

Descriptor connect_to(const Options& options, std::uint16_t port) {
  const AddressInfo address = look_up(options, port);
  Descriptor fd = open_socket(options, address->ai_family);
  if (connect(fd.get(), address->ai_addr, address->ai_addrlen) != 0) fail_with_errno("cannot connect to " + where(options, port));
  make_non_blocking(fd.get());
  return fd;
}

std::string congestion_of(int fd) {
  std::array<char, 16> name{};  // TCP_CA_NAME_MAX
  socklen_t size = name.size();
  if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) != 0) fail_with_errno("cannot read the congestion control");
  return std::string(name.data(), strnlen(name.data(), name.size()));
}

std::size_t send_buffer_of(int fd) { return buffer_of(fd, SO_SNDBUF); }
std::size_t receive_buffer_of(int fd) { return buffer_of(fd, SO_RCVBUF); }

}  // namespace nexar::bench
