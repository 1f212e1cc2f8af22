// How stream sockets and listeners are opened. Private to io.
#pragma once

#include <string>
#include <string_view>

#include <sys/socket.h>
#include <sys/un.h>

#include "io/file_descriptor.h"
#include "io/stream_socket.h"
#include "nexar/result.h"

namespace nexar::io {

// A unix address in the abstract name space: it is not a file, and is gone with its last socket.
struct UnixName {
  sockaddr_un address{};
  socklen_t length = 0;

  static Result<UnixName> make(std::string_view name);
  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&address); }
};

// How a message calls it.
std::string unix_text(std::string_view name);

std::string congestion_control(int fd);

bool use_congestion_control(int fd, std::string_view name);

struct OpenedTcp {
  FileDescriptor fd;
  std::string bbr{};  // the host's default, where the socket was opened without it
};

// Sockets with `options` applied, before anything else happens to them: TCP announces its window when it connects.
Result<OpenedTcp> open_tcp(const Address& family_of, const StreamOptions& options);
Result<FileDescriptor> open_unix(const StreamOptions& options);

}  // namespace nexar::io
