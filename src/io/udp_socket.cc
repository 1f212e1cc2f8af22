#include "io/udp_socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <fmt/format.h>

#include "base/assert.h"
#include "io/kernel_error.h"
#include "io/socket_options.h"

namespace nexar::io {
namespace {

// An address in the family of the socket.
class Name {
 public:
  Name(const Address& address, bool v6) : address_(address), v6_(v6) {
    if (v6) mapped_ = address.as_v6();
  }

  const sockaddr* data() const { return v6_ ? reinterpret_cast<const sockaddr*>(&mapped_) : address_.data(); }
  socklen_t size() const { return v6_ ? sizeof mapped_ : address_.size(); }

 private:
  Address address_;
  sockaddr_in6 mapped_{};
  bool v6_;
};

// Datagrams carry "do not fragment", for IPv4 through an IPv6 socket as well: what does not fit the path is an answer, not a slow success.
bool forbid_fragments(int fd, bool v6) {
  const bool v4_done = set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
  return v6 ? set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO) : v4_done;
}

// ENOBUFS says that a device is full, on kernels and options that tell at all.
bool is_blocked(int number) { return number == EAGAIN || number == EWOULDBLOCK || number == ENOBUFS; }

// What the network, its filters (EPERM, EACCES) or an address that a peer made up (EINVAL) can cause.
bool is_unreachable(int number) {
  switch (number) {
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
    case ENONET:
    case EPERM:
    case EACCES:
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
    case EINVAL: return true;
    default: return false;
  }
}

std::size_t segment_size(msghdr& message, std::size_t whole) {
  for (cmsghdr* entry = CMSG_FIRSTHDR(&message); entry != nullptr; entry = CMSG_NXTHDR(&message, entry)) {
    if (entry->cmsg_level != IPPROTO_UDP || entry->cmsg_type != UDP_GRO) continue;
    int size = 0;
    std::memcpy(&size, CMSG_DATA(entry), sizeof size);
    if (size > 0) return std::min(static_cast<std::size_t>(size), whole);
  }
  return whole;
}

std::size_t datagrams_in(std::size_t bytes, std::size_t segment) { return bytes <= segment ? 1 : (bytes + segment - 1) / segment; }

}  // namespace

Result<UdpSocket> UdpSocket::open(const Address& local, const Options& options) {
  Result<FileDescriptor> fd = open_socket(local, SOCK_DGRAM);
  if (!fd) return fd.error();
  Result<FileDescriptor> probe = open_socket(local, SOCK_DGRAM);
  if (!probe) return probe.error();
  if (!forbid_fragments(fd->get(), local.family() == Address::Family::kV6)) {
    return kernel_error(fmt::format("cannot forbid fragments on {}", local.to_string()), errno);
  }
  set_receive_buffer(fd->get(), options.buffer_bytes);
  set_send_buffer(fd->get(), options.buffer_bytes);
  if (options.segmentation_offload) set_option(fd->get(), IPPROTO_UDP, UDP_GRO, 1);  // from 5.0 on; without it each call brings one
  if (Result<void> bound = bind_socket(fd->get(), local); !bound) return bound.error();
  if (Result<void> bound = bind_socket(probe->get(), local.with_port(0)); !bound) return bound.error();
  return UdpSocket(*std::move(fd), *std::move(probe), local, options.segmentation_offload);
}

UdpSocket::UdpSocket(FileDescriptor fd, FileDescriptor probe, const Address& local, bool offload)
    : fd_(std::move(fd)), probe_(std::move(probe)), v6_(local.family() == Address::Family::kV6), offload_(offload) {}

Result<void> UdpSocket::connect(const Address& peer) {
  const Name name(peer, v6_);
  if (::connect(fd_.get(), name.data(), name.size()) != 0)
    return kernel_error(fmt::format("cannot connect to {}", peer.to_string()), errno);
  connected_ = true;
  return {};
}

Result<Received> UdpSocket::receive(base::ByteSpan buffer) {
  NEXAR_ASSERT(buffer.size() >= kReceiveBufferMin, "a receive buffer takes the longest super-packet");
  sockaddr_in6 from;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control;
  iovec region{buffer.data(), buffer.size()};
  msghdr message{};
  message.msg_name = &from;
  message.msg_namelen = sizeof from;
  message.msg_iov = &region;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();

  ++counters_.receive_calls;
  const ssize_t count = recvmsg(fd_.get(), &message, 0);
  if (count < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return Received{};
    if (errno == ECONNREFUSED || errno == EMSGSIZE || errno == EPROTO || errno == ENOPROTOOPT || is_unreachable(errno)) {
      return Received{.outcome = ReceiveOutcome::kRefused, .bytes = {}, .segment = 0, .from = {}};
    }
    return kernel_error(fmt::format("cannot receive on {}", local_address().to_string()), errno);
  }
  const auto length = static_cast<std::size_t>(count);
  const std::size_t segment = segment_size(message, length);
  counters_.datagrams_received += datagrams_in(length, segment);
  counters_.bytes_received += length;
  return Received{.outcome = ReceiveOutcome::kDatagrams,
                  .bytes = buffer.first(length),
                  .segment = segment,
                  .from = Address::from(reinterpret_cast<const sockaddr*>(&from), message.msg_namelen)};
}

Result<Sent> UdpSocket::send(base::ByteView bytes, std::size_t segment, const Address& to) {
  NEXAR_ASSERT(segment > 0 && !bytes.empty(), "there is something to send");
  if (bytes.size() <= segment || !offload_) return send_one_by_one(bytes, segment, to);

  NEXAR_ASSERT(bytes.size() <= kSuperPacketBytesMax && datagrams_in(bytes.size(), segment) <= kSegmentsMax,
               "a super-packet keeps to its limits");
  const int number = send_once(bytes, segment, to);
  if (number == 0) return Sent{SendOutcome::kSent, bytes.size()};
  if (number != EIO && number != EINVAL) return give_up(number, 0, to);

  // Either this device cannot cut, or the segments are too long for it, or the address is no good: EINVAL says all three. The first
  // datagram alone tells them apart, and only if it goes out where the whole did not is the offload to blame.
  Result<Sent> sent = send_one_by_one(bytes, segment, to);
  if (sent && sent->bytes > 0) offload_ = false;
  return sent;
}

Result<Sent> UdpSocket::send_one_by_one(base::ByteView bytes, std::size_t segment, const Address& to) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const base::ByteView datagram = bytes.subspan(sent, std::min(segment, bytes.size() - sent));
    if (const int number = send_once(datagram, datagram.size(), to); number != 0) return give_up(number, sent, to);
    sent += datagram.size();
  }
  return Sent{SendOutcome::kSent, sent};
}

// One system call; 0, or the error's number.
int UdpSocket::send_once(base::ByteView bytes, std::size_t segment, const Address& to) {
  const Name name(to, v6_);
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(std::uint16_t))> control{};
  iovec region{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  if (!connected_) {
    message.msg_name = const_cast<sockaddr*>(name.data());
    message.msg_namelen = name.size();
  }
  message.msg_iov = &region;
  message.msg_iovlen = 1;
  if (bytes.size() > segment) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* entry = CMSG_FIRSTHDR(&message);
    entry->cmsg_level = IPPROTO_UDP;
    entry->cmsg_type = UDP_SEGMENT;
    entry->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
    const auto size = static_cast<std::uint16_t>(segment);
    std::memcpy(CMSG_DATA(entry), &size, sizeof size);
  }
  ++counters_.send_calls;
  while (sendmsg(fd_.get(), &message, 0) < 0) {
    if (errno != EINTR) return errno;
  }
  counters_.datagrams_sent += datagrams_in(bytes.size(), segment);
  counters_.bytes_sent += bytes.size();
  return 0;
}

Result<Sent> UdpSocket::give_up(int number, std::size_t sent, const Address& to) {
  if (is_blocked(number)) {
    ++counters_.blocked_sends;
    return Sent{SendOutcome::kBlocked, sent};
  }
  if (number == EMSGSIZE) return Sent{SendOutcome::kTooBig, sent};
  if (number == ECONNREFUSED) return Sent{SendOutcome::kRefused, sent};
  if (is_unreachable(number)) return Sent{SendOutcome::kUnreachable, sent};
  return kernel_error(fmt::format("cannot send from {} to {}", local_address().to_string(), to.to_string()), number);
}

// A socket that was connected before keeps the source address it got then, which may be wrong for the next route: it is disconnected first.
Result<std::size_t> UdpSocket::path_mtu(const Address& to) const {
  const std::string what = fmt::format("cannot learn the MTU of the path to {}", to.to_string());
  const sockaddr nobody{.sa_family = AF_UNSPEC, .sa_data = {}};
  const Name name(to.port() != 0 ? to : to.with_port(1), v6_);  // any port will do: nothing is sent
  if (::connect(probe_.get(), &nobody, sizeof nobody) != 0) return kernel_error(what, errno);
  if (::connect(probe_.get(), name.data(), name.size()) != 0) return kernel_error(what, errno);
  const bool v4 = to.family() == Address::Family::kV4;
  const std::optional<int> mtu = v4 ? get_option(probe_.get(), IPPROTO_IP, IP_MTU) : get_option(probe_.get(), IPPROTO_IPV6, IPV6_MTU);
  if (!mtu) return kernel_error(what, errno);
  return static_cast<std::size_t>(std::max(*mtu, 0));
}

Address UdpSocket::local_address() const { return bound_address(fd_.get()); }
std::size_t UdpSocket::receive_buffer_bytes() const { return receive_buffer(fd_.get()); }
std::size_t UdpSocket::send_buffer_bytes() const { return send_buffer(fd_.get()); }

}  // namespace nexar::io
