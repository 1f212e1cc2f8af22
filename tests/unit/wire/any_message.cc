#include "wire/any_message.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

namespace nexar::wire {
namespace {

constexpr std::uint64_t kU64 = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint32_t kU32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint16_t kU16 = std::numeric_limits<std::uint16_t>::max();
constexpr std::uint16_t kLastStripe = kStripesMax - 1;

template <std::size_t... I>
constexpr auto types_of(std::index_sequence<I...>) {
  return std::array{std::variant_alternative_t<I, AnyMessage>::kType...};
}

constexpr auto kTypes = types_of(std::make_index_sequence<std::variant_size_v<AnyMessage>>());

template <typename M>
Result<AnyMessage> decode_as(const Header& header, base::ByteView payload) {
  const auto message = [&] {
    if constexpr (Carrier<M>)
      return read_header<M>(header);
    else
      return decode_frame<M>(header, payload);
  }();
  if (!message) return message.error();
  return AnyMessage(*message);
}

template <std::size_t I = 0>
Result<AnyMessage> decode_from(const Header& header, base::ByteView payload) {
  if constexpr (I == std::variant_size_v<AnyMessage>) {
    return Error(ErrorCode::kInternal, "a type has no message");
  } else {
    using M = std::variant_alternative_t<I, AnyMessage>;
    return header.type == M::kType ? decode_as<M>(header, payload) : decode_from<I + 1>(header, payload);
  }
}

NodeId node(std::uint8_t fill) {
  NodeId id;
  id.bytes.fill(static_cast<std::byte>(fill));
  return id;
}

// As deep and as long as an error may be.
Error longest_error() {
  Error error(ErrorCode::kInternal, std::string(kTextBytesMax, 'z'));
  for (std::uint32_t depth = 0; depth <= kErrorCausesMax; ++depth) {
    const std::vector<Rank> ranks(kErrorRanksMax, std::numeric_limits<Rank>::min());
    Error above = Error(static_cast<ErrorCode>(depth), std::string(kTextBytesMax, 'x')).with_ranks(ranks);
    above = std::move(above).with_operation(std::string(kNameBytesMax, 'y'), kU64).with_epoch(kU64);
    error = depth == 0 ? std::move(above) : std::move(above).with_cause(std::move(error));
  }
  return error;
}

Error lost() {
  return Error(ErrorCode::kPeerLost, "rank 3 stopped answering \xE2\x80\x94 5 s")
      .with_rank(3)
      .with_operation("all_reduce", 17)
      .with_epoch(2);
}

CallDescriptor largest_call() {
  return {.operation = OperationId::kReduce,
          .count = kU64,
          .dtype = DataType::kBool,
          .op = ReduceOp::kXor,
          .root = std::numeric_limits<Rank>::max(),
          .digest = kU64};
}

Progress largest_progress() { return {kU32, kU32, kU64, std::numeric_limits<Rank>::max()}; }

NodeAddress address(std::uint8_t family, std::uint16_t port) {
  NodeAddress address{static_cast<NodeAddress::Family>(family), {}, port};
  std::fill_n(address.ip.begin(), family == 4 ? 4 : 16, std::byte{0xfd});
  return address;
}

std::vector<NodeAddress> most_addresses() {
  std::vector<NodeAddress> addresses(kAddressesMax, address(6, kU16));
  addresses.back() = address(4, kU16);
  return addresses;
}

std::array<std::byte, kProofBytes> proof() {
  std::array<std::byte, kProofBytes> bytes;
  bytes.fill(std::byte{0x77});
  return bytes;
}

std::vector<std::byte> der() { return std::vector<std::byte>(kDerBytesMax, std::byte{0x30}); }

CoreSet most_cores() { return {0, 5, CoreSet::kCoreEnd - 1}; }

LaneName largest_lane() { return {kTcpLanesMax - 1, kU32}; }

InfoAnswer largest_answer() {
  const InfoAnswer::Counters counters{kU64, kU64, kU64, kU64, kU64, kU64, kU64, kU64, kU64, kU64, kU64, kU64, kU64, kU64};
  return {proof(), std::numeric_limits<Rank>::max(), kWorldMax - 1, std::string(kNodeNameBytesMax, 'n'), counters};
}

InfoPeer largest_peer() {
  InfoPeer peer{
      std::numeric_limits<Rank>::max(),       InfoPeer::State::kLost,          InfoPeer::Way::kQuic,           InfoPeer::Way::kTcp,
      std::string(kAddressTextBytesMax, 'a'), std::string(kTextBytesMax, 's'), std::string(kTextBytesMax, 't')};
  peer.round_trip_ns = peer.tcp_lanes_lost = peer.tcp_bytes_sent = peer.tcp_bytes_received = kU64;
  peer.lanes.fill({kU64, kU64 - 1, kU64 - 2, kU64 - 3});
  peer.tcp_lanes = kTcpLanesMax;
  return peer;
}

std::vector<AnyMessage> smallest() {
  return {Hello{},
          Ping{},
          Pong{},
          Goodbye{},
          Abort{},
          Grant{.transfer = 1},
          Withdraw{.transfer = 1},
          Refuse{.transfer = 1},
          Want{},
          Queued{},
          Credit{},
          Watermark{.transfer = 1},
          Resume{.transfer = 1},
          Verdict{},
          Probe{},
          ProbeReply{},
          Revoke{{node(0)}},
          EagerMessage{},
          Announce{.transfer = 1},
          Bulk{.transfer = 1},
          RpcRequest{},
          RpcLargeRequest{.transfer = 1},
          RpcReply{},
          RpcLargeReply{.transfer = 1},
          RpcFailure{},
          RpcCancel{},
          JoinProof{},
          SeedProof{},
          JoinRequest{},
          JoinAccept{},
          JoinRefuse{},
          JoinReady{{address(4, 1)}},
          JoinView{.size = 1, .members = {{}}},
          LaneOffer{.port = 1},
          LaneAnswer{},
          LaneDown{},
          LaneHello{},
          LaneEnd{},
          HostOffer{},
          HostAnswer{},
          HostVerdict{},
          InfoRequest{},
          InfoAnswer{},
          InfoPeer{},
          JoinAsk{},
          JoinState{}};
}

std::vector<AnyMessage> largest() {
  constexpr std::uint64_t kSent = kU64 & ~kChosenByReceiver;
  return {
      Hello{kU16, kU16, node(0xff), ClusterId{node(0xfe).bytes}, kU64, kU64, kU32, kU32, kU64},
      Ping{kU64, kU64},
      Pong{kU64, kU64},
      Goodbye{GoodbyeReason::kProtocol, std::string(kTextBytesMax, 'g')},
      Abort{std::string(kTextBytesMax, 'a')},
      Grant{kSent, kU64 - 7, 7, kStripesMax, kU16, false, 0, 0, 0},
      Grant{kU64, 0, kU64, kStripesMax, kU16, true, kU64, kU32, kU64},
      Withdraw{kU64},
      Refuse{kU64, RefuseReason::kCancelled},
      Want{Kind::kPointToPoint, true, 0, 0},
      Want{Kind::kCollective, false, kU64, kU32},
      Queued{Kind::kCollective, kU32},
      Credit{Kind::kCollective, kU64, kU32},
      Watermark{kU64, kLastStripe, kU16, kU64, true},
      Resume{kU64, kLastStripe, kU16, kU64},
      Verdict{17, lost()},
      Verdict{kU64, longest_error()},
      Probe{kU64, largest_call(), largest_progress()},
      ProbeReply{kU64, OperationState::kRunning, largest_call(), largest_progress()},
      ProbeReply{kU64, OperationState::kEnded, std::nullopt, largest_progress()},
      Revoke{std::vector<NodeId>(kLostNodesMax, node(0xaa))},
      EagerMessage{Kind::kPointToPoint, kU64, 0, 0},
      EagerMessage{Kind::kCollective, kU64, kU32, kU64},
      Announce{Kind::kPointToPoint, kU64, 0, kSent, kU64, 0},
      Announce{Kind::kCollective, kU64, kU32, kSent, kU64, kU64},
      Bulk{kU64, kLastStripe, kU16, kU64 - kBulkBytesMax},
      RpcRequest{kU64, kU64, kU32},
      RpcLargeRequest{kU64, kU64, kU32, kSent, kU64},
      RpcReply{kU64},
      RpcLargeReply{kU64, kSent, kU64},
      RpcFailure{kU64, RpcStatus::kRefused, lost()},
      RpcFailure{kU64, RpcStatus::kHandlerError, longest_error()},
      RpcCancel{kU64},
      JoinProof{proof()},
      SeedProof{proof()},
      JoinRequest{kU16, kU16, std::numeric_limits<Rank>::max(), kU64, HostId{node(0xfd).bytes}, most_cores(),
                  std::string(kAgreedBytesMax, 'c'), der(), std::string(kNodeNameBytesMax, 'n')},
      JoinAccept{std::numeric_limits<Rank>::max(), der(), der()},
      JoinRefuse{lost()},
      JoinRefuse{longest_error()},
      JoinReady{most_addresses()},
      JoinView{kU64, kWorldMax, kWorldMax - kViewPartMembersMax,
               std::vector<JoinView::Member>(kViewPartMembersMax, {node(0xee), HostId{node(0xed).bytes}, most_cores(), most_addresses()})},
      LaneOffer{largest_lane(), kU16, true, node(0xff).bytes},
      LaneAnswer{largest_lane(), LaneAnswerStatus::kOverloaded, std::string(kTextBytesMax, 'l')},
      LaneDown{largest_lane(), std::string(kTextBytesMax, 'd')},
      LaneHello{largest_lane()},
      HostOffer{node(0xff).bytes, node(0xfe).bytes},
      HostAnswer{true, true, std::string(kTextBytesMax, 'h')},
      HostVerdict{true, true, std::string(kTextBytesMax, 'v')},
      InfoRequest{proof(), true},
      largest_answer(),
      largest_peer(),
      JoinState{1, lost()},
      JoinState{kU64, longest_error()},
  };
}

Sample sample_of(const AnyMessage& message, bool large, std::string name) {
  const FrameType type = kTypes[message.index()];
  const bool grouped = (rules_of(type).fields & kFieldGroup) != 0;
  const Scope scope = large ? Scope{grouped ? kU64 : 0, kU64} : Scope{};
  const std::vector<std::byte> carried(rules_of(type).length_min + (large ? 5 : 0), std::byte{0x5a});
  return {std::move(name), type, encode_any(message, scope, carried), message, scope};
}

}  // namespace

std::span<const FrameType> all_types() { return kTypes; }

Result<AnyMessage> decode_any(const Header& header, base::ByteView payload) { return decode_from(header, payload); }

std::vector<std::byte> encode_any(const AnyMessage& any, Scope scope, base::ByteView carried) {
  return std::visit(
      [&]<typename M>(const M& message) {
        if constexpr (Carrier<M>) {
          std::vector<std::byte> frame(kHeaderBytes);
          encode(header_of(message, scope, static_cast<std::uint32_t>(carried.size())), std::span(frame).template first<kHeaderBytes>());
          frame.insert(frame.end(), carried.begin(), carried.end());
          return frame;
        } else {
          std::vector<std::byte> frame(frame_bytes_max<M>());
          frame.resize(encode_frame(message, scope, frame));
          return frame;
        }
      },
      any);
}

std::vector<Sample> samples() {
  std::vector<Sample> all;
  std::map<FrameType, int> seen;
  const auto add = [&](const AnyMessage& message, bool large) {
    const FrameType type = kTypes[message.index()];
    all.push_back(sample_of(message, large, std::string(to_string(type)) + "_" + std::to_string(++seen[type])));
  };
  for (const AnyMessage& message : smallest()) add(message, false);
  for (const AnyMessage& message : largest()) add(message, true);
  return all;
}

}  // namespace nexar::wire
