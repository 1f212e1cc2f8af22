// One TCP connection, set up in the one way that every comparison uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "tcp_options.h"

namespace nexar::bench {

// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();

  int get() const { return fd_; }

 private:
  int fd_;
};

// What the kernel refused: `what: reason`, from errno.
[[noreturn]] void fail_with_errno(const std::string& what);

struct Listener {
  Descriptor fd;
  std::uint16_t port;
};

Listener listen_on(const Options& options);
Descriptor accept_one(const Listener& listener);
Descriptor connect_to(const Options& options, std::uint16_t port);

// What the kernel granted, for the report.
std::string congestion_of(int fd);
std::size_t send_buffer_of(int fd);
std::size_t receive_buffer_of(int fd);

}  // namespace nexar::bench
