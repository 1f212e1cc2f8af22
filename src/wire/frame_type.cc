#include "wire/frame_type.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/assert.h"
#include "wire/limits.h"

namespace nexar::wire {
namespace {

constexpr std::uint8_t kMatched = kFieldGroup | kFieldKey;                               // point-to-point, by tag
constexpr std::uint8_t kStriped = kFieldKey | kFieldId | kFieldPart | kFieldGeneration;  // a position in a stripe of a transfer
constexpr std::uint8_t kNone = 0;

// Versions, rank, digest and host; then four lengths and what they count.
constexpr std::uint32_t kJoinRequestBytesMin = 2 + 2 + 4 + 8 + 16 + 1 + 2 + 2 + 2;
constexpr std::uint32_t kJoinRequestBytesMax = kJoinRequestBytesMin + kCoresBytesMax + kAgreedBytesMax + kDerBytesMax + kNodeNameBytesMax;
constexpr std::uint32_t kViewPartBytes = 8 + 4 + 4 + 2;  // epoch, size, first, count

constexpr FrameRules kRules[] = {
    // name, type, lane, flags, fields, more fields, shortest and longest payload, urgent
    {"hello", FrameType::kHello, Lane::kControl, 0, kNone, kNone, 68, 68},
    {"ping", FrameType::kPing, Lane::kControl, 0, kNone, kNone, 16, 16, true},
    {"pong", FrameType::kPong, Lane::kControl, 0, kNone, kNone, 16, 16, true},
    {"goodbye", FrameType::kGoodbye, Lane::kControl, 0, kNone, kNone, 3, 3 + kTextBytesMax},
    {"abort", FrameType::kAbort, Lane::kControl, 0, kNone, kNone, 2, 2 + kTextBytesMax},
    {"grant", FrameType::kGrant, Lane::kControl, kFlagAhead, kFieldGroup | kFieldId | kFieldGeneration, kFieldKey | kFieldPart, 26, 26},
    {"withdraw", FrameType::kWithdraw, Lane::kControl, 0, kFieldGroup | kFieldId, kNone, 0, 0},
    {"refuse", FrameType::kRefuse, Lane::kControl, 0, kFieldGroup | kFieldId, kNone, 1, 1},
    {"want", FrameType::kWant, Lane::kControl, kFlagCollective | kFlagAnyTag, kMatched, kFieldPart, 0, 0},
    {"queued", FrameType::kQueued, Lane::kControl, kFlagCollective, kFieldGroup, kNone, 4, 4},
    {"credit", FrameType::kCredit, Lane::kControl, kFlagCollective, kFieldGroup, kNone, 12, 12},
    {"watermark", FrameType::kWatermark, Lane::kControl, kFlagFinal, kFieldGroup | kStriped, kNone, 0, 0},
    {"resume", FrameType::kResume, Lane::kControl, 0, kFieldGroup | kStriped, kNone, 0, 0},
    {"verdict", FrameType::kVerdict, Lane::kControl, 0, kMatched, kNone, kErrorBytesMin, kErrorBytesMax},
    {"probe", FrameType::kProbe, Lane::kControl, 0, kMatched, kNone, 44, 44},
    {"probe_reply", FrameType::kProbeReply, Lane::kControl, 0, kMatched, kNone, 22, 46},
    {"revoke", FrameType::kRevoke, Lane::kControl, 0, kNone, kNone, 2 + 16, 2 + 16 * kLostNodesMax},
    {"lane_offer", FrameType::kLaneOffer, Lane::kControl, 0, kFieldId | kFieldPart, kNone, 19, 19},
    {"lane_answer", FrameType::kLaneAnswer, Lane::kControl, 0, kFieldId | kFieldPart, kNone, 3, 3 + kTextBytesMax},
    {"lane_down", FrameType::kLaneDown, Lane::kControl, 0, kFieldId | kFieldPart, kNone, 2, 2 + kTextBytesMax},
    {"host_offer", FrameType::kHostOffer, Lane::kControl, 0, kNone, kNone, 32, 32},
    {"host_answer", FrameType::kHostAnswer, Lane::kControl, 0, kNone, kNone, 4, 4 + kTextBytesMax},
    {"host_verdict", FrameType::kHostVerdict, Lane::kControl, 0, kNone, kNone, 4, 4 + kTextBytesMax},
    {"message", FrameType::kMessage, Lane::kData, kFlagCollective, kMatched, kFieldPart | kFieldId, 0, kEagerBytesMax, true},
    {"announce", FrameType::kAnnounce, Lane::kData, kFlagCollective, kMatched | kFieldId, kFieldPart, 16, 16},
    {"bulk", FrameType::kBulk, Lane::kBulk, 0, kFieldGroup | kStriped, kNone, 1, kBulkBytesMax},
    {"lane_hello", FrameType::kLaneHello, Lane::kBulk, 0, kFieldId | kFieldPart, kNone, 0, 0},
    {"lane_end", FrameType::kLaneEnd, Lane::kBulk, 0, kNone, kNone, 0, 0},
    {"rpc_request", FrameType::kRpcRequest, Lane::kRpc, 0, kMatched | kFieldId | kFieldPart, kNone, 0, kEagerBytesMax, true},
    {"rpc_large_request", FrameType::kRpcLargeRequest, Lane::kRpc, 0, kMatched | kFieldId | kFieldPart, kNone, 16, 16, true},
    {"rpc_reply", FrameType::kRpcReply, Lane::kRpc, 0, kFieldGroup | kFieldId, kNone, 0, kEagerBytesMax, true},
    {"rpc_large_reply", FrameType::kRpcLargeReply, Lane::kRpc, 0, kFieldGroup | kFieldId, kNone, 16, 16, true},
    {"rpc_failure", FrameType::kRpcFailure, Lane::kRpc, 0, kFieldGroup | kFieldId | kFieldPart, kNone, kErrorBytesMin, kErrorBytesMax,
     true},
    {"rpc_cancel", FrameType::kRpcCancel, Lane::kRpc, 0, kFieldGroup | kFieldId, kNone, 0, 0, true},
    {"join_proof", FrameType::kJoinProof, Lane::kControl, 0, kNone, kNone, 32, 32},
    {"seed_proof", FrameType::kSeedProof, Lane::kControl, 0, kNone, kNone, 32, 32},
    {"join_request", FrameType::kJoinRequest, Lane::kControl, 0, kNone, kNone, kJoinRequestBytesMin, kJoinRequestBytesMax},
    {"join_accept", FrameType::kJoinAccept, Lane::kControl, 0, kNone, kNone, 4 + 2 + 2, 4 + 2 * (2 + kDerBytesMax)},
    {"join_refuse", FrameType::kJoinRefuse, Lane::kControl, 0, kNone, kNone, kErrorBytesMin, kErrorBytesMax},
    {"join_ready", FrameType::kJoinReady, Lane::kControl, 0, kNone, kNone, 1 + kAddressBytes, 1 + kAddressesMax* kAddressBytes},
    {"join_view", FrameType::kJoinView, Lane::kControl, 0, kNone, kNone, kViewPartBytes + kMemberBytesMin,
     kViewPartBytes + kViewPartMembersMax* kMemberBytesMax},
    {"info_request", FrameType::kInfoRequest, Lane::kControl, 0, kNone, kNone, 32 + 1, 32 + 1},
    {"info_answer", FrameType::kInfoAnswer, Lane::kControl, 0, kNone, kNone, kInfoAnswerBytesMin, kInfoAnswerBytesMin + kNodeNameBytesMax},
    {"info_peer", FrameType::kInfoPeer, Lane::kControl, 0, kNone, kNone, kInfoPeerBytesMin,
     kInfoPeerBytesMin + kAddressTextBytesMax + 2 * kTextBytesMax},
    {"join_ask", FrameType::kJoinAsk, Lane::kControl, 0, kNone, kNone, 0, 0},
    {"join_state", FrameType::kJoinState, Lane::kControl, 0, kNone, kNone, 8 + kErrorBytesMin, 8 + kErrorBytesMax},
};

constexpr std::string_view kLaneNames[] = {"control", "rpc", "data", "bulk"};

}  // namespace

constinit const std::array<const FrameRules*, 256> kRulesByType = [] {
  std::array<const FrameRules*, 256> rules{};
  for (const FrameRules& one : kRules) rules[static_cast<std::uint8_t>(one.type)] = &one;
  return rules;
}();

std::string_view to_string(Lane lane) {
  const auto index = static_cast<std::size_t>(lane);
  return index < std::size(kLaneNames) ? kLaneNames[index] : "unknown";
}

std::string_view to_string(FrameType type) {
  const FrameRules* rules = find_rules(static_cast<std::uint8_t>(type));
  return rules == nullptr ? "unknown" : rules->name;
}

}  // namespace nexar::wire
