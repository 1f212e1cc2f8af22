// A node asks for 4 MiB in each direction, which is 3 ms of 10 Gbit/s. An ordinary user gets no more than the host's limit.
#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "base/units.h"
#include "doctor/checks.h"
#include "io/udp_socket.h"

namespace nexar::tool::doctor {
namespace {

// What 10 Gbit/s bring while a thread waits for its turn of a busy core, some 200 us. Debian's default is less.
constexpr std::size_t kBytesMin = std::size_t{256} << 10;

Finding judge(const std::string& way, std::size_t granted, std::size_t asked, const std::string& limit) {
  const std::string check = "udp " + way + " buffer";
  const std::string seen = fmt::format("{} granted of {} asked for", base::format_size(granted), base::format_size(asked));
  const std::string remedy =
      fmt::format("raise the host's limit: `sysctl -w {}={}`, and put that line into /etc/sysctl.d/ so that it stays", limit, asked);
  if (granted >= asked) return ok(check, seen);
  return granted >= kBytesMin ? warning(check, seen, remedy) : wrong(check, seen + ": packets are lost when a core is busy", remedy);
}

}  // namespace

Findings check_udp_buffers(const Surroundings&) {
  const io::UdpOptions options;
  const Result<io::UdpSocket> socket = io::UdpSocket::open(io::Address::loopback_v4(0), options);
  if (!socket) return {wrong("udp buffers", socket.error().sentence(), "UDP sockets must be allowed: look at the sandbox or container")};
  return {judge("receive", socket->receive_buffer_bytes(), options.buffer_bytes, "net.core.rmem_max"),
          judge("send", socket->send_buffer_bytes(), options.buffer_bytes, "net.core.wmem_max")};
}

}  // namespace nexar::tool::doctor
