// Segmentation offload: one call sends up to 64 datagrams, and one receives them joined. Tried on a real pair of sockets on loopback.
#include <cstddef>
#include <vector>

#include <fmt/format.h>

#include <poll.h>

#include "doctor/checks.h"
#include "io/udp_socket.h"

namespace nexar::tool::doctor {
namespace {

constexpr std::size_t kSegment = 1200;
constexpr std::size_t kSegments = 32;
constexpr int kPatienceMs = 1000;  // loopback delivers at once

Result<Finding> try_offload() {
  const char* name = "gso and gro";
  Result<io::UdpSocket> from = io::UdpSocket::open(io::Address::loopback_v4(0));
  if (!from) return from.error();
  Result<io::UdpSocket> to = io::UdpSocket::open(io::Address::loopback_v4(0));
  if (!to) return to.error();
  const std::vector<std::byte> bytes(kSegment * kSegments);
  if (const Result<io::Sent> sent = from->send(bytes, kSegment, to->local_address()); !sent) return sent.error();

  std::vector<std::byte> buffer(io::UdpSocket::kReceiveBufferMin);
  pollfd readable{to->fd(), POLLIN, 0};
  poll(&readable, 1, kPatienceMs);
  const Result<io::Received> received = to->receive(buffer);
  if (!received) return received.error();
  const char* remedy = "use a kernel of 5.0 or later; in a virtual machine or container with a network of its own, that of the host too";
  if (!from->segmentation_offload()) return warning(name, "the kernel does not cut datagrams: one system call for each", remedy);
  if (received->segment >= received->bytes.size()) return warning(name, "datagrams arrive one by one: one system call for each", remedy);
  return ok(name, fmt::format("{} datagrams in one call, {} joined on arrival", kSegments, received->bytes.size() / received->segment));
}

}  // namespace

Findings check_offload(const Surroundings&) {
  const Result<Finding> found = try_offload();
  if (found) return {*found};
  return {wrong("gso and gro", found.error().sentence(), "UDP on loopback must work: look at the firewall of this host")};
}

}  // namespace nexar::tool::doctor
