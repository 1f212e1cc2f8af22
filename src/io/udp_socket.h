// UDP with segmentation offload: up to 64 datagrams to one peer in one call, and as many from it in one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "io/address.h"
#include "io/file_descriptor.h"
#include "nexar/result.h"

namespace nexar::io {

struct UdpOptions {
  // Of each direction. Holds what comes while the engine does something else: 4 MiB are 3 ms of 10 Gbit/s.
  std::size_t buffer_bytes = std::size_t{4} << 20;

  // False: one datagram in each call, also where the kernel could do better.
  bool segmentation_offload = true;
};

enum class ReceiveOutcome : std::uint8_t {
  kDatagrams,  // there is something
  kBlocked,    // nothing there
  kRefused,    // a peer or a router said that something sent before did not arrive: nothing is wrong with the socket
};

// One datagram, or several of one sender: each `segment` bytes long, the last one perhaps shorter.
struct Received {
  ReceiveOutcome outcome = ReceiveOutcome::kBlocked;
  base::ByteView bytes;  // in the caller's buffer
  std::size_t segment = 0;
  Address from;
};

enum class SendOutcome : std::uint8_t {
  kSent,         // all of it
  kBlocked,      // the buffer is full: go on when the socket is writable
  kTooBig,       // a datagram is larger than the path takes
  kUnreachable,  // there is no way to that address from this socket now: no route, a filter, another family, no such thing
  kRefused,      // nobody is at that port: a connected socket hears of it with the next call
};

struct Sent {
  SendOutcome outcome = SendOutcome::kSent;
  std::size_t bytes = 0;  // that went out, in whole datagrams
};

struct UdpCounters {
  std::uint64_t datagrams_sent = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t send_calls = 0;
  std::uint64_t blocked_sends = 0;
  std::uint64_t datagrams_received = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t receive_calls = 0;
};

// A non-blocking UDP socket that never lets a datagram be fragmented.
//
// Thread: one at a time. Owned by whoever reads it; moving it keeps its descriptor.
class UdpSocket {
 public:
  using Options = UdpOptions;

  // What one call sends at most: beyond these the kernel takes the slow way (with headers the whole must stay under 64 KiB) or refuses.
  static constexpr std::size_t kSuperPacketBytesMax = 65'400;
  static constexpr std::size_t kSegmentsMax = 64;

  // With receive offload the kernel delivers up to 64 KiB at once, and cuts off what does not fit.
  static constexpr std::size_t kReceiveBufferMin = std::size_t{64} << 10;

  // Bound to `local`; port 0 lets the kernel choose, and [::] takes IPv4 as well. Fails with kIo, naming the address, when the port is in
  // use.
  static Result<UdpSocket> open(const Address& local, const Options& options = {});

  // Only `peer` is heard and spoken to from here on, and that nobody is there is noticed (kRefused).
  Result<void> connect(const Address& peer);

  // Takes what is there into `buffer`, of at least kReceiveBufferMin bytes.
  Result<Received> receive(base::ByteSpan buffer);

  // Sends `bytes` as datagrams of `segment` bytes, the last one perhaps shorter. Where the kernel cannot cut them for this path, they go
  // out one by one from then on.
  Result<Sent> send(base::ByteView bytes, std::size_t segment, const Address& to);

  // The largest IP packet, headers included, on the way to `to`, as far as this host knows.
  Result<std::size_t> path_mtu(const Address& to) const;

  Address local_address() const;
  int fd() const { return fd_.get(); }
  bool segmentation_offload() const { return offload_; }
  std::size_t receive_buffer_bytes() const;  // granted, which may be less than asked for
  std::size_t send_buffer_bytes() const;
  const UdpCounters& counters() const { return counters_; }

 private:
  UdpSocket(FileDescriptor fd, FileDescriptor probe, const Address& local, bool offload);

  int send_once(base::ByteView bytes, std::size_t segment, const Address& to);
  Result<Sent> send_one_by_one(base::ByteView bytes, std::size_t segment, const Address& to);
  Result<Sent> give_up(int number, std::size_t sent, const Address& to);

  FileDescriptor fd_;
  FileDescriptor probe_;  // never sends: connected to an address to ask for its route, in the socket's own network namespace
  bool v6_;               // takes addresses of family AF_INET6 only
  bool connected_ = false;
  bool offload_;
  UdpCounters counters_;
};

}  // namespace nexar::io
