// The kinds of frames, the lanes they travel on, and which header fields each may use: the one table behind every check.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/assert.h"

namespace nexar::wire {

// An independent class of traffic on a link. A link has one lane of each kind but several bulk lanes; which of them a frame came by
// is known from its stream.
enum class Lane : std::uint8_t {
  kControl = 0,
  kRpc = 1,
  kData = 2,
  kBulk = 3,
};

// The numbers travel and never change within a wire version.
enum class FrameType : std::uint8_t {
  // control
  kHello = 1,
  kPing = 2,
  kPong = 3,
  kGoodbye = 4,
  kAbort = 5,
  kGrant = 6,
  kWithdraw = 7,
  kRefuse = 8,
  kWant = 9,
  kQueued = 10,
  kCredit = 11,
  kWatermark = 12,
  kResume = 13,
  kVerdict = 14,
  kProbe = 15,
  kProbeReply = 16,
  kRevoke = 17,
  kLaneOffer = 18,
  kLaneAnswer = 19,
  kLaneDown = 20,
  kHostOffer = 21,
  kHostAnswer = 22,
  kHostVerdict = 23,
  // data
  kMessage = 32,
  kAnnounce = 33,
  // bulk
  kBulk = 48,
  kLaneHello = 49,
  kLaneEnd = 50,
  // rpc
  kRpcRequest = 64,
  kRpcLargeRequest = 65,
  kRpcReply = 66,
  kRpcLargeReply = 67,
  kRpcFailure = 68,
  kRpcCancel = 69,
  // control, between a node that joins and the seed
  kJoinProof = 80,
  kSeedProof = 81,
  kJoinRequest = 82,
  kJoinAccept = 83,
  kJoinRefuse = 84,
  kJoinReady = 85,
  kJoinView = 86,
  // control, between an observer and a node or the seed
  kInfoRequest = 87,
  kInfoAnswer = 88,
  kInfoPeer = 89,
  // control, between a node that joins and the seed
  kJoinAsk = 90,
  kJoinState = 91,
};

// Bits of Header::flags.
inline constexpr std::uint16_t kFlagCollective = 1;  // belongs to a collective: key is its sequence number, part its step
inline constexpr std::uint16_t kFlagAnyTag = 2;      // a want that takes any tag
inline constexpr std::uint16_t kFlagFinal = 4;       // a watermark after which nothing of its stripe is missing
inline constexpr std::uint16_t kFlagAhead = 8;       // a grant that was not asked for by an announcement

// Bits that name the header fields which not every type uses.
inline constexpr std::uint8_t kFieldGroup = 1;
inline constexpr std::uint8_t kFieldKey = 2;
inline constexpr std::uint8_t kFieldId = 4;
inline constexpr std::uint8_t kFieldPart = 8;
inline constexpr std::uint8_t kFieldGeneration = 16;

// What is allowed in a frame of one type.
struct FrameRules {
  std::string_view name;
  FrameType type;
  Lane lane;
  std::uint16_t flags;       // the flags it may carry
  std::uint8_t fields;       // the fields it may use
  std::uint8_t more_fields;  // and those it may use as well when it is collective or ahead
  std::uint32_t length_min;  // of the payload
  std::uint32_t length_max;
  bool urgent = false;  // somebody may wait for just this frame: bulk that comes beside it gives way for a while
};

// From a type's number to its rules; null where there is no such type. Every frame looks its rules up, some several times.
extern const std::array<const FrameRules*, 256> kRulesByType;

// The rules for a number that came from a peer; null when no type has it.
inline const FrameRules* find_rules(std::uint8_t type) { return kRulesByType[type]; }

// The rules of a type of ours.
inline const FrameRules& rules_of(FrameType type) {
  const FrameRules* rules = find_rules(static_cast<std::uint8_t>(type));
  NEXAR_ASSERT(rules != nullptr, "a type of ours has a row in the table");
  return *rules;
}

std::string_view to_string(Lane lane);
std::string_view to_string(FrameType type);

}  // namespace nexar::wire
