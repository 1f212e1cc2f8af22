// Passing of file descriptors over unix sockets.
#include <array>
#include <cerrno>
#include <cstring>

#include <sys/socket.h>

#include <fmt/format.h>

#include "base/assert.h"
#include "io/stream_socket.h"

namespace nexar::io {
namespace {

constexpr std::size_t kControlBytes = CMSG_SPACE(sizeof(int) * StreamSocket::kDescriptorsMax);
using Control = std::array<std::byte, kControlBytes>;

// Takes over every descriptor of the message, so that none is left open whatever happens next.
std::vector<FileDescriptor> take_descriptors(msghdr& message) {
  std::vector<FileDescriptor> taken;
  for (cmsghdr* entry = CMSG_FIRSTHDR(&message); entry != nullptr; entry = CMSG_NXTHDR(&message, entry)) {
    if (entry->cmsg_level != SOL_SOCKET || entry->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (entry->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(entry) + i * sizeof fd, sizeof fd);
      taken.emplace_back(fd);
    }
  }
  return taken;
}

}  // namespace

Result<Transferred> StreamSocket::write_with_descriptors(base::ByteView bytes, std::span<const int> descriptors) {
  NEXAR_ASSERT(!bytes.empty(), "descriptors travel with bytes");
  NEXAR_ASSERT(!descriptors.empty() && descriptors.size() <= kDescriptorsMax, "1 to kDescriptorsMax descriptors travel together");
  alignas(cmsghdr) Control control{};
  iovec whole = region(bytes);
  msghdr message{};
  message.msg_iov = &whole;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* entry = CMSG_FIRSTHDR(&message);
  entry->cmsg_level = SOL_SOCKET;
  entry->cmsg_type = SCM_RIGHTS;
  entry->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(entry), descriptors.data(), descriptors.size_bytes());
  return outcome(sendmsg(fd(), &message, MSG_NOSIGNAL), "cannot pass descriptors to");
}

Result<ReceivedDescriptors> StreamSocket::read_with_descriptors(base::ByteSpan bytes) {
  alignas(cmsghdr) Control control{};
  iovec whole = region(bytes);
  msghdr message{};
  message.msg_iov = &whole;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t count = recvmsg(fd(), &message, MSG_CMSG_CLOEXEC);
  Result<Transferred> transferred = outcome(count, "cannot read from");
  if (!transferred) return transferred.error();
  ReceivedDescriptors received{*transferred, {}};
  if (count < 0) return received;
  received.descriptors = take_descriptors(message);
  received.incomplete = (message.msg_flags & MSG_CTRUNC) != 0;
  if (!received.incomplete || received.descriptors.size() < kDescriptorsMax) return received;
  return Error(ErrorCode::kRefused, fmt::format("{} passed more than {} descriptors at once", peer_, kDescriptorsMax));
}

}  // namespace nexar::io
