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

constexpr FrameRules kRules[] = {
    // type, name, lane, flags, fields, more fields, shortest and longest payload
    {FrameType::kHello, "hello", Lane::kControl, 0, kNone, kNone, 68, 68},
    {FrameType::kPing, "ping", Lane::kControl, 0, kNone, kNone, 16, 16},
    {FrameType::kPong, "pong", Lane::kControl, 0, kNone, kNone, 16, 16},
    {FrameType::kGoodbye, "goodbye", Lane::kControl, 0, kNone, kNone, 3, 3 + kTextBytesMax},
    {FrameType::kAbort, "abort", Lane::kControl, 0, kNone, kNone, 2, 2 + kTextBytesMax},
    {FrameType::kGrant, "grant", Lane::kControl, kFlagAhead, kFieldGroup | kFieldId | kFieldGeneration, kFieldKey | kFieldPart, 26, 26},
    {FrameType::kWithdraw, "withdraw", Lane::kControl, 0, kFieldGroup | kFieldId, kNone, 0, 0},
    {FrameType::kRefuse, "refuse", Lane::kControl, 0, kFieldGroup | kFieldId, kNone, 1, 1},
    {FrameType::kWant, "want", Lane::kControl, kFlagCollective | kFlagAnyTag, kMatched, kFieldPart, 0, 0},
    {FrameType::kQueued, "queued", Lane::kControl, kFlagCollective, kFieldGroup, kNone, 4, 4},
    {FrameType::kCredit, "credit", Lane::kControl, kFlagCollective, kFieldGroup, kNone, 12, 12},
    {FrameType::kWatermark, "watermark", Lane::kControl, kFlagFinal, kFieldGroup | kStriped, kNone, 0, 0},
    {FrameType::kResume, "resume", Lane::kControl, 0, kFieldGroup | kStriped, kNone, 0, 0},
    {FrameType::kVerdict, "verdict", Lane::kControl, 0, kMatched, kNone, kErrorBytesMin, kErrorBytesMax},
    {FrameType::kProbe, "probe", Lane::kControl, 0, kMatched, kNone, 44, 44},
    {FrameType::kProbeReply, "probe_reply", Lane::kControl, 0, kMatched, kNone, 22, 46},
    {FrameType::kRevoke, "revoke", Lane::kControl, 0, kNone, kNone, 2 + 16, 2 + 16 * kLostNodesMax},
    {FrameType::kMessage, "message", Lane::kData, kFlagCollective, kMatched, kFieldPart | kFieldId, 0, kEagerBytesMax},
    {FrameType::kAnnounce, "announce", Lane::kData, kFlagCollective, kMatched | kFieldId, kFieldPart, 16, 16},
    {FrameType::kBulk, "bulk", Lane::kBulk, 0, kFieldGroup | kStriped, kNone, 1, kBulkBytesMax},
    {FrameType::kRpcRequest, "rpc_request", Lane::kRpc, 0, kMatched | kFieldId | kFieldPart, kNone, 0, kEagerBytesMax},
    {FrameType::kRpcLargeRequest, "rpc_large_request", Lane::kRpc, 0, kMatched | kFieldId | kFieldPart, kNone, 16, 16},
    {FrameType::kRpcReply, "rpc_reply", Lane::kRpc, 0, kFieldGroup | kFieldId, kNone, 0, kEagerBytesMax},
    {FrameType::kRpcLargeReply, "rpc_large_reply", Lane::kRpc, 0, kFieldGroup | kFieldId, kNone, 16, 16},
    {FrameType::kRpcFailure, "rpc_failure", Lane::kRpc, 0, kFieldGroup | kFieldId | kFieldPart, kNone, kErrorBytesMin, kErrorBytesMax},
    {FrameType::kRpcCancel, "rpc_cancel", Lane::kRpc, 0, kFieldGroup | kFieldId, kNone, 0, 0},
};

constexpr std::uint8_t kNoRow = 0xff;

// From a type's number to its row: every frame looks its rules up.
constexpr auto kRows = [] {
  std::array<std::uint8_t, 256> rows{};
  rows.fill(kNoRow);
  for (std::size_t row = 0; row < std::size(kRules); ++row)
    rows[static_cast<std::uint8_t>(kRules[row].type)] = static_cast<std::uint8_t>(row);
  return rows;
}();

constexpr std::string_view kLaneNames[] = {"control", "rpc", "data", "bulk"};

}  // namespace

const FrameRules* find_rules(std::uint8_t type) { return kRows[type] == kNoRow ? nullptr : &kRules[kRows[type]]; }

const FrameRules& rules_of(FrameType type) {
  const FrameRules* rules = find_rules(static_cast<std::uint8_t>(type));
  NEXAR_ASSERT(rules != nullptr, "a type of ours has a row in the table");
  return *rules;
}

std::string_view to_string(Lane lane) {
  const auto index = static_cast<std::size_t>(lane);
  return index < std::size(kLaneNames) ? kLaneNames[index] : "unknown";
}

std::string_view to_string(FrameType type) {
  const FrameRules* rules = find_rules(static_cast<std::uint8_t>(type));
  return rules == nullptr ? "unknown" : rules->name;
}

}  // namespace nexar::wire
