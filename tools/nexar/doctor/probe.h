// Questions to a UDP port that answers: whether packets pass, how long they take, how many are lost and how large they may be.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "io/address.h"
#include "io/udp_socket.h"
#include "nexar/result.h"

namespace nexar::tool::doctor {

// How to ask, and what an answer looks like.
class Dialect {
 public:
  virtual ~Dialect() = default;

  // A datagram of that many bytes, at least kQuestionBytesMin.
  virtual std::vector<std::byte> question(std::uint32_t number, std::size_t bytes) const = 0;

  // The number of the question that this answers; nothing when it answers none of ours.
  virtual std::optional<std::uint32_t> answered(base::ByteView datagram) const = 0;
};

// What a QUIC server takes for a first packet. It fits every path that QUIC works on.
inline constexpr std::size_t kQuestionBytesMin = 1200;

// The question is a first packet of a version of QUIC that nobody speaks: every listening endpoint answers with those it speaks, and
// neither remembers the caller nor asks for a secret.
class QuicDialect final : public Dialect {
 public:
  std::vector<std::byte> question(std::uint32_t number, std::size_t bytes) const override;
  std::optional<std::uint32_t> answered(base::ByteView datagram) const override;
};

enum class Reach : std::uint8_t {
  kAnswered,
  kSilent,    // nothing came back
  kRefused,   // the other host says that nobody is at that port
  kFiltered,  // this host does not let the packet out
};

struct Path {
  Reach reach = Reach::kSilent;
  std::chrono::nanoseconds round_trip{};  // the median
  int asked = 0;
  int lost = 0;
  std::size_t mtu_assumed = 0;  // what this host takes for the largest packet of the way
  std::size_t mtu_passed = 0;   // the largest that was answered
};

// Thread: one at a time. Owned by a check.
class Prober {
 public:
  // From any port to `to`. The error tells why there is no way to it.
  static Result<Prober> open(const io::Address& to, const Dialect& dialect);

  // Asks until something answers, for at most `patience`.
  Reach reach(std::chrono::nanoseconds patience);

  // All of it; about a second when somebody answers.
  Path examine(std::chrono::nanoseconds patience);

 private:
  using Clock = std::chrono::steady_clock;
  struct Question {
    Clock::time_point asked;
    std::optional<Clock::duration> took;
    std::size_t packet = 0;  // bytes, headers included
  };

  Prober(io::UdpSocket socket, const io::Address& to, const Dialect& dialect) : socket_(std::move(socket)), to_(to), dialect_(&dialect) {}

  // False when the datagram is longer than this host sends to there.
  bool ask(std::size_t packet);
  void listen(std::chrono::nanoseconds time, std::size_t enough);
  void take_answers();
  std::size_t headers() const { return to_.family() == io::Address::Family::kV4 ? 28 : 48; }
  void examine_loss(Path& path);
  void examine_size(Path& path);

  io::UdpSocket socket_;
  io::Address to_;
  const Dialect* dialect_;
  std::vector<Question> questions_;
  std::size_t answers_ = 0;
  Reach refusal_ = Reach::kSilent;
};

// Whether a TCP connection to `to` can be made: kRefused also means that packets pass.
Reach reach_tcp(const io::Address& to, std::chrono::nanoseconds patience);

}  // namespace nexar::tool::doctor
