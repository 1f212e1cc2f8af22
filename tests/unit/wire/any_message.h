// Any message of the wire, chosen by its type, and one sample or more of each: for tests and fuzzers that go through all of them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "nexar/result.h"
#include "wire/host_messages.h"
#include "wire/info_messages.h"
#include "wire/join_messages.h"
#include "wire/lane_messages.h"
#include "wire/link_messages.h"
#include "wire/matching_messages.h"
#include "wire/operation_messages.h"
#include "wire/rpc_messages.h"
#include "wire/transfer_messages.h"

namespace nexar::wire {

using AnyMessage =
    std::variant<Hello, Ping, Pong, Goodbye, Abort, Grant, Withdraw, Refuse, Want, Queued, Credit, Watermark, Resume, Verdict, Probe,
                 ProbeReply, Revoke, EagerMessage, Announce, Bulk, RpcRequest, RpcLargeRequest, RpcReply, RpcLargeReply, RpcFailure,
                 RpcCancel, JoinProof, SeedProof, JoinRequest, JoinAccept, JoinRefuse, JoinReady, JoinView, LaneOffer, LaneAnswer, LaneDown,
                 LaneHello, LaneEnd, HostOffer, HostAnswer, HostVerdict, InfoRequest, InfoAnswer, InfoPeer, JoinAsk, JoinState>;

// Every type, in the order of AnyMessage.
std::span<const FrameType> all_types();

// The message of a frame; a carrier's payload is not looked at.
Result<AnyMessage> decode_any(const Header& header, base::ByteView payload);

// Header and payload; `carried` is the payload of a carrier.
std::vector<std::byte> encode_any(const AnyMessage& message, Scope scope, base::ByteView carried);

struct Sample {
  std::string name;  // of the type, and a number where there are several
  FrameType type;
  std::vector<std::byte> frame;
  AnyMessage message;
  Scope scope;
};

// At least one of every type: at its smallest and with the largest values that it may have.
std::vector<Sample> samples();

}  // namespace nexar::wire
