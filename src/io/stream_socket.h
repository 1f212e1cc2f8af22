// Byte streams: TCP between hosts, unix sockets with abstract names within one.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>
#include <sys/uio.h>

#include "base/bytes.h"
#include "base/time.h"
#include "io/address.h"
#include "io/file_descriptor.h"
#include "nexar/result.h"

namespace nexar::io {

struct StreamOptions {
  bool no_delay = true;                  // TCP: small writes go out at once
  std::size_t receive_buffer_bytes = 0;  // 0: the kernel adapts it
  std::size_t send_buffer_bytes = 0;
  bool without_bbr = false;  // TCP: begins with cubic, or else reno, where the host's default is BBR and they can be had
  Address local = {};        // TCP, connecting: the address to come from; none lets the kernel choose
};

// How far a read or a write came. Errors of the connection (a reset, a timeout) are Errors.
struct Transferred {
  enum class State : std::uint8_t {
    kOpen,     // `bytes` were moved, at least one
    kBlocked,  // none now: wait until the socket is ready
    kClosed,   // reading: the peer has finished sending, and everything it sent was read
  };
  State state = State::kOpen;
  std::size_t bytes = 0;
};

// What the kernel has measured of the way to the peer; zero where it does not know.
struct StreamPath {
  std::uint64_t bytes_per_second = 0;  // at which the peer got bytes lately
  base::Duration round_trip{};         // the shortest

  std::size_t bytes_in(base::Duration time) const {
    constexpr std::uint64_t kMicroseconds = 1'000'000;
    return bytes_per_second * static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(time).count()) /
           kMicroseconds;
  }

  // What is on its way when the path is just full.
  std::size_t bytes() const { return bytes_in(round_trip); }
};

// Who is at the other end of a unix socket, as the kernel saw it when the connection was made.
struct PeerCredentials {
  pid_t process = 0;
  uid_t user = 0;
  gid_t group = 0;
};

struct ReceivedDescriptors {
  Transferred transferred;
  std::vector<FileDescriptor> descriptors;
  bool incomplete = false;  // this process may not open all that came
};

// What a read or write moves; for writing the bytes are not changed.
inline iovec region(base::ByteView bytes) { return {const_cast<std::byte*>(bytes.data()), bytes.size()}; }

// One end of a connection. Non-blocking; a write to a peer that is gone is an Error, never a signal.
//
// Thread: one at a time. Owned by whoever reads it.
class StreamSocket {
 public:
  using Options = StreamOptions;

  // The kernel's limit on the regions of one call.
  static constexpr std::size_t kRegionsMax = 1024;

  // That one message passes: a segment and a doorbell are two, and the room for them is on the stack.
  static constexpr std::size_t kDescriptorsMax = 16;

  // Abstract names have this many bytes at most, because that is what an address has room for.
  static constexpr std::size_t kNameBytesMax = 107;

  // Begins to connect. When the socket is writable, finish_connect() tells how that ended.
  static Result<StreamSocket> connect(const Address& to, const Options& options = {});

  // A unix socket is connected at once, or refused; kOverloaded when too many wait to be accepted there.
  static Result<StreamSocket> connect_unix(std::string_view name, const Options& options = {});

  // Two unix sockets, connected to each other.
  static Result<std::pair<StreamSocket, StreamSocket>> pair();

  // True when connected, false while that is still going on; the error names the peer.
  Result<bool> finish_connect();

  // At most kRegionsMax regions, not all of them empty; they are filled, or sent, in order.
  Result<Transferred> read(std::span<const iovec> regions);
  Result<Transferred> write(std::span<const iovec> regions);
  Result<Transferred> read(base::ByteSpan bytes);
  Result<Transferred> write(base::ByteView bytes);

  // TCP: from now on a last packet that is not full waits for what is written next, which comes soon; or no longer.
  void hold_back(bool held);

  // No more is written; the peer reads kClosed after the rest.
  Result<void> shutdown_write();

  // Unix only. `descriptors` travel with the first of `bytes`, of which there is at least one; they stay the caller's. When blocked,
  // nothing was sent.
  Result<Transferred> write_with_descriptors(base::ByteView bytes, std::span<const int> descriptors);

  // Reads bytes and what came with them. A peer that passes more than kDescriptorsMax is refused, and all of them are closed.
  Result<ReceivedDescriptors> read_with_descriptors(base::ByteSpan bytes);

  Result<PeerCredentials> peer_credentials() const;  // unix only

  Address local_address() const;
  const std::string& peer() const { return peer_; }  // for messages: its address, or its unix name
  std::size_t receive_buffer_bytes() const;
  std::size_t send_buffer_bytes() const;
  std::string congestion_control() const;  // of TCP; empty otherwise

  // For a connection that is made already. A buffer size that cannot be had stays as it was.
  void resize_receive_buffer(std::size_t bytes);
  void resize_send_buffer(std::size_t bytes);

  // TCP that was opened without BBR goes on with it. False where nothing has changed.
  bool return_to_bbr();

  // Sends from a buffer of that many bytes, whatever the host's limit is; false when that is not permitted, and nothing has changed.
  bool widen_send_buffer(std::size_t bytes);

  StreamPath path() const;  // TCP

  // Bytes that the kernel keeps because the peer has not acknowledged them; 0 when it does not say.
  std::size_t unacknowledged_bytes() const;
  int fd() const { return fd_.get(); }

 private:
  friend class StreamListener;
  StreamSocket(FileDescriptor fd, std::string peer, std::string bbr = {})
      : fd_(std::move(fd)), peer_(std::move(peer)), bbr_(std::move(bbr)) {}

  Error failed(std::string_view what, int number) const;
  Result<Transferred> outcome(ssize_t count, std::string_view what) const;

  FileDescriptor fd_;
  std::string peer_;
  std::string bbr_;  // to return to
};

// Where connections arrive. Non-blocking. Thread: one at a time.
class StreamListener {
 public:
  // Connections that may wait to be accepted; the kernel turns more of them away. One turn of a loop accepts them all, so this is the
  // number of peers that connect in the same millisecond.
  static constexpr int kBacklog = 1024;

  // Accepted sockets inherit the options. Port 0 lets the kernel choose.
  static Result<StreamListener> listen(const Address& local, const StreamOptions& options = {});
  static Result<StreamListener> listen_unix(std::string_view name, const StreamOptions& options = {}, int backlog = kBacklog);

  // Nothing when nobody waits. kOverloaded when there is no descriptor left for it: the listener stays readable, so stop watching it for a
  // while.
  Result<std::optional<StreamSocket>> accept();

  Address local_address() const;
  int fd() const { return fd_.get(); }

 private:
  StreamListener(FileDescriptor fd, std::string name, std::string bbr = {})
      : fd_(std::move(fd)), name_(std::move(name)), bbr_(std::move(bbr)) {}

  FileDescriptor fd_;
  std::string name_;  // for messages
  std::string bbr_;   // that accepted sockets can return to
};

}  // namespace nexar::io
