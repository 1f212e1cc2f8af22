// One end of the measurement: moves messages over a connected socket, takes the time, and checks what came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tcp_options.h"
#include "tcp_socket.h"

namespace nexar::bench {

// What one repetition of one size gave.
struct Sample {
  std::vector<std::uint64_t> nanoseconds;  // of each iteration; in an exchange the mean of both ends
  std::uint64_t wrong = 0;                 // bytes that were not what the other end sent, at both ends
};

// Both ends construct one with the same options and call measure() for the same sizes in the same order.
//
// The message that is sent and the one that is received have memory of their own, touched before the first iteration. What is sent depends
// on the direction and the repetition, and its first bytes on the iteration; the receiver looks at these each time, and at the whole of the
// last message after the time is taken.
class End {
 public:
  enum class Side : std::uint8_t { kServer, kClient };

  // Throws Failure when the other end was given other options.
  End(const Options& options, Side side, Descriptor socket);

  // Only the client's is complete: the server gives its part to the client.
  Sample measure(std::size_t bytes, int repetition);

  // Returns when the other end has come here too, so that neither closes under the other.
  void meet();

  int fd() const { return socket_.get(); }

 private:
  using View = std::span<const std::byte>;
  using Span = std::span<std::byte>;

  void greet();
  void iterate(std::uint64_t number);
  void stamp(std::uint64_t number);
  std::uint64_t count_wrong_stamp(std::uint64_t number) const;
  std::uint64_t count_wrong(int repetition) const;
  void give(const Sample& mine);
  void merge_other(Sample& mine);

  void transfer(View out, Span in);
  std::size_t send_some(View bytes);
  std::size_t receive_some(Span bytes);
  void sleep();

  const Options& options_;
  const Side side_;
  Descriptor socket_;
  Descriptor epoll_;
  std::vector<std::byte> out_memory_;
  std::vector<std::byte> in_memory_;
  Span out_;  // the parts that the current size uses
  Span in_;
  std::uint64_t wrong_stamps_ = 0;
};

}  // namespace nexar::bench
