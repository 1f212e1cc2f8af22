// Calls of functions on another node, on the rpc lane.
//
//   caller                                  callee
//     rpc_request, or rpc_large_request       rpc_reply, rpc_large_reply or rpc_failure
//     rpc_cancel                              (nothing: a reply that has left is dropped)
//
// A call's number is chosen by the caller, unique on its link and never used again. What is longer than kEagerBytesMax travels as a
// transfer (transfer_messages.h); the frame here takes the place of its announcement.
#pragma once

#include <cstdint>

#include "nexar/error.h"
#include "wire/error_text.h"
#include "wire/frame.h"

namespace nexar::wire {

// The payload is the arguments.
struct RpcRequest {
  static constexpr FrameType kType = FrameType::kRpcRequest;
  static constexpr bool kCarriesBytes = true;

  std::uint64_t call = 0;
  std::uint64_t function = 0;
  std::uint32_t deadline_ms = 0;  // from the moment it arrives; 0 for none

  const char* fault() const { return nullptr; }
  void put(Header& header, Writer& writer) const;
  static RpcRequest get(const Header& header, Reader& reader);
  bool operator==(const RpcRequest&) const = default;
};

// The same, with arguments that wait for a grant.
struct RpcLargeRequest {
  static constexpr FrameType kType = FrameType::kRpcLargeRequest;
  static constexpr bool kCarriesBytes = false;

  std::uint64_t call = 0;
  std::uint64_t function = 0;
  std::uint32_t deadline_ms = 0;
  std::uint64_t transfer = 0;
  std::uint64_t bytes = 0;

  const char* fault() const;
  void put(Header& header, Writer& writer) const;
  static RpcLargeRequest get(const Header& header, Reader& reader);
  bool operator==(const RpcLargeRequest&) const = default;
};

// The payload is the result.
struct RpcReply {
  static constexpr FrameType kType = FrameType::kRpcReply;
  static constexpr bool kCarriesBytes = true;

  std::uint64_t call = 0;

  const char* fault() const { return nullptr; }
  void put(Header& header, Writer& writer) const;
  static RpcReply get(const Header& header, Reader& reader);
  bool operator==(const RpcReply&) const = default;
};

// The same, with a result that waits for a grant.
struct RpcLargeReply {
  static constexpr FrameType kType = FrameType::kRpcLargeReply;
  static constexpr bool kCarriesBytes = false;

  std::uint64_t call = 0;
  std::uint64_t transfer = 0;
  std::uint64_t bytes = 0;

  const char* fault() const;
  void put(Header& header, Writer& writer) const;
  static RpcLargeReply get(const Header& header, Reader& reader);
  bool operator==(const RpcLargeReply&) const = default;
};

enum class RpcStatus : std::uint8_t {
  kUnknownFunction = 1,
  kHandlerError = 2,
  kOverloaded = 3,
  kDeadlinePassed = 4,
  kCancelled = 5,
  kRefused = 6,
};

// There is no result; the error says why.
struct RpcFailure {
  static constexpr FrameType kType = FrameType::kRpcFailure;
  static constexpr bool kCarriesBytes = false;

  std::uint64_t call = 0;
  RpcStatus status = RpcStatus::kHandlerError;
  Error error{ErrorCode::kInternal, ""};

  const char* fault() const;
  void put(Header& header, Writer& writer) const;
  static RpcFailure get(const Header& header, Reader& reader);
  bool operator==(const RpcFailure& other) const { return call == other.call && status == other.status && same(error, other.error); }
};

// The caller no longer waits.
struct RpcCancel {
  static constexpr FrameType kType = FrameType::kRpcCancel;
  static constexpr bool kCarriesBytes = false;

  std::uint64_t call = 0;

  const char* fault() const { return nullptr; }
  void put(Header& header, Writer& writer) const;
  static RpcCancel get(const Header& header, Reader& reader);
  bool operator==(const RpcCancel&) const = default;
};

}  // namespace nexar::wire
