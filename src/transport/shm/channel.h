// The unix socket between two processes of one host: who the other is, and what they hand each other before they share memory.
//
//   who connects                         who listens
//     greeting, its doorbell  ------------>  same user? a nonce that was given out?
//     <------------ greeting, its doorbell, and the segment if it made it
//
// Afterwards loans travel here (loan.h), and the last word of the link; that it ends without one is how a death is noticed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/event_descriptor.h"
#include "io/file_descriptor.h"
#include "io/process_memory.h"
#include "io/stream_socket.h"
#include "nexar/result.h"
#include "transport/shm/loan.h"
#include "wire/host_messages.h"

namespace nexar::transport::shm {

// What each end says first. In the clear: it stays on the host, between processes of one user.
struct Greeting {
  wire::HostNonce nonce{};
  io::ProcessMemory::Proof proof{};
  std::uint64_t segment_bytes = 0;  // 0: none comes along
};
inline constexpr std::size_t kGreetingBytes = 8 + 16 + 8 + 8 + 8;

// How a link ends, as the other end is told.
enum class LastWord : std::uint8_t { kClosed = 1, kAborted = 2, kProtocol = 3, kExpelled = 4 };
inline constexpr std::size_t kLastWordTextMax = 512;

// One end of the socket. Thread: engine.
struct Channel {
  io::StreamSocket socket;
  Greeting peer{};                            // what the other end said, once it has
  std::optional<io::EventDescriptor> bell{};  // its doorbell
  io::FileDescriptor segment{};               // if it came
  pid_t process = 0;

  // To the name that an offer told. kRefused when the process there is another user's.
  static Result<Channel> connect(std::string_view name);

  // kRefused when the other end is another user's.
  static Result<Channel> accepted(io::StreamSocket socket);

  // The doorbell and the segment, -1 for none, stay the caller's.
  Result<void> greet(const Greeting& greeting, int own_bell, int own_segment);

  // Whether the other end's greeting is here. An error when what came is none, or nothing more will.
  Result<bool> read_greeting();

  // The last thing that is said; what does not get through is replaced by the end of the socket.
  void say_last(LastWord word, std::string_view text);

  struct Last {
    std::optional<LastWord> word;  // nothing: it is gone without one
    std::string text;
  };
  // Reads loans, and the last word if it is here: nothing as long as the other end is there.
  std::optional<Last> read(std::vector<ReceivedLoan>& loans);

  // False when the socket takes nothing now, and nothing was sent; when it is gone, that is read.
  bool say(const SentLoan& loan);

  std::vector<std::byte> unread{};                 // less than a loan
  std::deque<io::FileDescriptor> unread_memory{};  // of loans that have not been read whole
};

// The abstract name of an offer.
std::string channel_name(const wire::HostName& name);

}  // namespace nexar::transport::shm
