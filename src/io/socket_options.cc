#include "io/socket_options.h"

#include <algorithm>
#include <cerrno>
#include <climits>

#include <linux/socket.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "io/kernel_error.h"

namespace nexar::io {
namespace {

int value_of(std::size_t bytes) { return static_cast<int>(std::min<std::size_t>(bytes, INT_MAX / 2)); }  // the kernel doubles it

// The kernel counts its own bookkeeping with the data and therefore shows twice what was asked for.
std::size_t get_buffer(int fd, int name) { return static_cast<std::size_t>(get_option(fd, SOL_SOCKET, name).value_or(0)) / 2; }

// One of the two buffers, by the names of its options.
struct Buffer {
  int forced;
  int plain;
  int lock;  // its bit of SO_BUF_LOCK
};
constexpr Buffer kReceive{SO_RCVBUFFORCE, SO_RCVBUF, SOCK_RCVBUF_LOCK};
constexpr Buffer kSend{SO_SNDBUFFORCE, SO_SNDBUF, SOCK_SNDBUF_LOCK};

void set_buffer(int fd, const Buffer& buffer, std::size_t bytes) {
  if (set_option(fd, SOL_SOCKET, buffer.forced, value_of(bytes))) return;
  set_option(fd, SOL_SOCKET, buffer.plain, value_of(bytes));
  if (get_buffer(fd, buffer.plain) >= bytes) return;
  if (const std::optional<int> locked = get_option(fd, SOL_SOCKET, SO_BUF_LOCK))
    set_option(fd, SOL_SOCKET, SO_BUF_LOCK, *locked & ~buffer.lock);
}

}  // namespace

bool set_option(int fd, int level, int name, int value) { return setsockopt(fd, level, name, &value, sizeof value) == 0; }

std::optional<int> get_option(int fd, int level, int name) {
  int value = 0;
  socklen_t length = sizeof value;
  if (getsockopt(fd, level, name, &value, &length) != 0) return std::nullopt;
  return value;
}

void set_receive_buffer(int fd, std::size_t bytes) { set_buffer(fd, kReceive, bytes); }
void set_send_buffer(int fd, std::size_t bytes) { set_buffer(fd, kSend, bytes); }
bool widen_send_buffer(int fd, std::size_t bytes) { return set_option(fd, SOL_SOCKET, SO_SNDBUFFORCE, value_of(bytes)); }
std::size_t receive_buffer(int fd) { return get_buffer(fd, SO_RCVBUF); }
std::size_t send_buffer(int fd) { return get_buffer(fd, SO_SNDBUF); }

Result<FileDescriptor> open_socket(const Address& address, int type) {
  const std::string what = fmt::format("cannot open a socket for {}", address.to_string());
  if (!address) return Error(ErrorCode::kInvalidArgument, what + ": there is no address");
  FileDescriptor fd(socket(address.data()->sa_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return kernel_error(what, errno);
  const bool v6 = address.family() == Address::Family::kV6;
  if (v6 && !set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, address.is_any() ? 0 : 1)) return kernel_error(what, errno);
  return fd;
}

Result<void> bind_socket(int fd, const Address& address) {
  if (bind(fd, address.data(), address.size()) == 0) return {};
  return kernel_error(fmt::format("cannot bind {}", address.to_string()), errno);
}

Address bound_address(int fd) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return {};
  return Address::from(reinterpret_cast<const sockaddr*>(&storage), length);
}

}  // namespace nexar::io
