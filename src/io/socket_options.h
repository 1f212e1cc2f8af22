// Socket options that UDP and stream sockets share. Private to io.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "io/address.h"
#include "io/file_descriptor.h"
#include "nexar/result.h"

namespace nexar::io {

// Sets an option that is an int; false with errno when the kernel does not take it.
bool set_option(int fd, int level, int name, int value);

// Reads one; nothing, with errno, when the kernel does not know it.
std::optional<int> get_option(int fd, int level, int name);

// Asks for buffers of that many bytes, beyond the limit of the host when the process is allowed to; where less is granted, the kernel may
// go on from there by itself, as it does for streams.
void set_receive_buffer(int fd, std::size_t bytes);
void set_send_buffer(int fd, std::size_t bytes);

// Beyond the limit of the host; false when that is not allowed, and then nothing has changed.
bool widen_send_buffer(int fd, std::size_t bytes);

// What was granted, in the measure in which it was asked for.
std::size_t receive_buffer(int fd);
std::size_t send_buffer(int fd);

// A non-blocking socket of the family of `address`, closed on exec. One for [::] takes IPv4 as well.
Result<FileDescriptor> open_socket(const Address& address, int type);

Result<void> bind_socket(int fd, const Address& address);

// Where it is bound; none when the kernel does not say.
Address bound_address(int fd);

}  // namespace nexar::io
