// What the kernel has measured of a TCP path. Apart from the rest of the socket: the C library's header knows an older form of the
// structure.
#include <cstddef>
#include <cstdint>

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "io/stream_socket.h"

namespace nexar::io {

std::size_t StreamSocket::path_bytes() const {
  constexpr std::uint64_t kMicroseconds = 1'000'000;
  tcp_info info{};
  socklen_t length = sizeof info;
  if (getsockopt(fd(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return 0;
  return info.tcpi_delivery_rate * info.tcpi_min_rtt / kMicroseconds;
}

}  // namespace nexar::io
