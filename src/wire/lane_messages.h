// TCP lanes: how the two ends of a link agree on them, and what they say on them.
//
//   one end (listens)                            the other (connects)
//     lane_offer(lane, generation, ticket) on control
//                                                  TCP: ticket in clear, lane_hello sealed
//     lane_hello sealed
//     bulk ... both ways ...
//     lane_end, answered by lane_end
//
// A lane has a number and a generation, which the listening end raises with every offer of that lane on its link and never uses again:
// every key follows from it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "wire/frame.h"

namespace nexar::wire {

// Random bytes that find a lane's keys at the end that listens. They are no secret and are used once.
using LaneTicket = std::array<std::byte, 16>;

// Which lane of a link, and which life of it.
struct LaneName {
  std::uint32_t lane = 0;
  std::uint32_t generation = 1;  // never 0
  bool operator==(const LaneName&) const = default;
};

// The sender listens for this lane at `port`, at the address where the link reaches it.
struct LaneOffer {
  static constexpr FrameType kType = FrameType::kLaneOffer;
  static constexpr bool kCarriesBytes = false;

  LaneName name = {};
  std::uint16_t port = 0;
  bool plain = false;  // payload in clear: only where both ends chose that
  LaneTicket ticket{};

  const char* fault() const;
  void put(Header& header, Writer& writer) const;
  static LaneOffer get(const Header& header, Reader& reader);
  bool operator==(const LaneOffer&) const = default;
};

enum class LaneAnswerStatus : std::uint8_t {
  kConnecting = 0,
  kUnreachable = 1,  // TCP does not pass
  kRefused = 2,      // the two ends disagree on plain text, or this end wants no TCP
  kOverloaded = 3,   // no memory or descriptor left for it
};

// What the other end does about an offer. A status but kConnecting ends the lane's generation.
struct LaneAnswer {
  static constexpr FrameType kType = FrameType::kLaneAnswer;
  static constexpr bool kCarriesBytes = false;

  LaneName name = {};
  LaneAnswerStatus status = LaneAnswerStatus::kConnecting;
  std::string text;  // at most kTextBytesMax

  const char* fault() const;
  void put(Header& header, Writer& writer) const;
  static LaneAnswer get(const Header& header, Reader& reader);
  bool operator==(const LaneAnswer&) const = default;
};

// The sender no longer uses this generation of the lane, and drops what still comes by it.
struct LaneDown {
  static constexpr FrameType kType = FrameType::kLaneDown;
  static constexpr bool kCarriesBytes = false;

  LaneName name = {};
  std::string reason;  // at most kTextBytesMax

  const char* fault() const;
  void put(Header& header, Writer& writer) const;
  static LaneDown get(const Header& header, Reader& reader);
  bool operator==(const LaneDown&) const = default;
};

// The first record on a TCP lane in each direction: who can seal it was offered the lane, or offered it.
struct LaneHello {
  static constexpr FrameType kType = FrameType::kLaneHello;
  static constexpr bool kCarriesBytes = false;

  LaneName name = {};

  const char* fault() const;
  void put(Header& header, Writer& writer) const;
  static LaneHello get(const Header& header, Reader& reader);
  bool operator==(const LaneHello&) const = default;
};

// The last record on a TCP lane in each direction: a stream that ends without it was cut.
struct LaneEnd {
  static constexpr FrameType kType = FrameType::kLaneEnd;
  static constexpr bool kCarriesBytes = false;

  const char* fault() const { return nullptr; }
  void put(Header&, Writer&) const {}
  static LaneEnd get(const Header&, Reader&) { return {}; }
  bool operator==(const LaneEnd&) const = default;
};

}  // namespace nexar::wire
