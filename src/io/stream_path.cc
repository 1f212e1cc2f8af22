// What the kernel has measured of a TCP path. Apart from the rest of the socket: the C library's header knows an older form of the
// structure.
#include <chrono>
#include <limits>

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "io/stream_socket.h"

namespace nexar::io {

StreamPath StreamSocket::path() const {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (getsockopt(fd(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return {};
  constexpr auto kUnknown = std::numeric_limits<decltype(info.tcpi_min_rtt)>::max();
  return {.bytes_per_second = info.tcpi_delivery_rate,
          .round_trip = std::chrono::microseconds(info.tcpi_min_rtt == kUnknown ? 0 : info.tcpi_min_rtt)};
}

}  // namespace nexar::io
