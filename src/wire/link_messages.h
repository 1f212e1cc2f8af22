// What the two ends of a link say about themselves: hello, ping, goodbye, abort. All on the control lane.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "nexar/result.h"
#include "types/node_id.h"
#include "wire/frame.h"

namespace nexar::wire {

// The first frame of a link, in each direction. The node that a peer claims to be must be the one its certificate names; whoever
// authenticates it compares.
struct Hello {
  static constexpr FrameType kType = FrameType::kHello;
  static constexpr bool kCarriesBytes = false;

  std::uint16_t wire_version = kWireVersion;
  std::uint16_t plan_version = 0;
  NodeId node{};
  ClusterId cluster{};
  std::uint64_t config_digest = 0;

  // What the sender of this hello keeps of early messages, for each (group, kind): bytes and messages that may come eagerly, and
  // announcements beyond them. Two kinds: point-to-point and collective.
  std::uint64_t eager_bytes = 0;
  std::uint32_t eager_messages = 0;
  std::uint32_t announcements = 0;

  // A feature is used when both ends have its bit; bits that are not known are ignored.
  std::uint64_t features = 0;

  const char* fault() const { return nullptr; }
  void put(Header& header, Writer& writer) const;
  static Hello get(const Header& header, Reader& reader);
  bool operator==(const Hello&) const = default;
};

// Success when the two can work together; otherwise kRefused, naming what differs on both sides.
Result<void> check_compatible(const Hello& ours, const Hello& theirs);

// Asks for a pong.
struct Ping {
  static constexpr FrameType kType = FrameType::kPing;
  static constexpr bool kCarriesBytes = false;

  std::uint64_t nonce = 0;
  std::uint64_t time = 0;  // nanoseconds on the sender's own time line

  const char* fault() const { return nullptr; }
  void put(Header& header, Writer& writer) const;
  static Ping get(const Header& header, Reader& reader);
  bool operator==(const Ping&) const = default;
};

// The answer: both numbers of the ping, as they came.
struct Pong {
  static constexpr FrameType kType = FrameType::kPong;
  static constexpr bool kCarriesBytes = false;

  std::uint64_t nonce = 0;
  std::uint64_t time = 0;

  const char* fault() const { return nullptr; }
  void put(Header& header, Writer& writer) const;
  static Pong get(const Header& header, Reader& reader);
  bool operator==(const Pong&) const = default;
};

enum class GoodbyeReason : std::uint8_t {
  kLeaving = 0,    // the node closes: a departure, not a loss
  kDuplicate = 1,  // both ends opened a link at once; the other one stays
  kNotYet = 2,     // the node is not in the view yet: try again
  kRefused = 3,    // identity, version or configuration; the text says which
  kProtocol = 4,   // the peer sent what this version does not; the text says what
};

// The last frame of a link: nothing more comes from the sender.
struct Goodbye {
  static constexpr FrameType kType = FrameType::kGoodbye;
  static constexpr bool kCarriesBytes = false;

  GoodbyeReason reason = GoodbyeReason::kLeaving;
  std::string text;  // at most kTextBytesMax

  const char* fault() const;
  void put(Header& header, Writer& writer) const;
  static Goodbye get(const Header& header, Reader& reader);
  bool operator==(const Goodbye&) const = default;
};

// Ends the world: every rank stops with this reason.
struct Abort {
  static constexpr FrameType kType = FrameType::kAbort;
  static constexpr bool kCarriesBytes = false;

  std::string reason;  // at most kTextBytesMax

  const char* fault() const { return nullptr; }
  void put(Header& header, Writer& writer) const;
  static Abort get(const Header& header, Reader& reader);
  bool operator==(const Abort&) const = default;
};

}  // namespace nexar::wire
