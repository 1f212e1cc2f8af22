#include "rpc/errors.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"

namespace nexar::rpc {
namespace {

Error about(const Call& call, ErrorCode code, std::string sentence) {
  return Error(code, std::move(sentence)).with_rank(call.peer).with_operation(fmt::format("call of {}", call.name), call.id);
}

}  // namespace

Error answered(const Call& call, wire::RpcStatus status, const Error& error) {
  switch (status) {
    case wire::RpcStatus::kUnknownFunction:
      return about(call, ErrorCode::kUnsupported, fmt::format("rank {} has no function {}", call.peer, call.name));
    case wire::RpcStatus::kHandlerError:
      return about(call, ErrorCode::kRefused, fmt::format("function {} failed on rank {}: {}", call.name, call.peer, error.sentence()))
          .with_cause(error);
    case wire::RpcStatus::kOverloaded:
      return about(call, ErrorCode::kOverloaded,
                   fmt::format("rank {} did not take the call of {}: {}", call.peer, call.name, error.sentence()))
          .with_cause(error);
    case wire::RpcStatus::kDeadlinePassed: return timed_out(call);
    case wire::RpcStatus::kCancelled:
      return about(call, ErrorCode::kCancelled, fmt::format("rank {} ended the call of {}: {}", call.peer, call.name, error.sentence()))
          .with_cause(error);
    case wire::RpcStatus::kRefused: break;
  }
  return about(call, error.code(), fmt::format("rank {} refused the call of {}: {}", call.peer, call.name, error.sentence()))
      .with_cause(error);
}

Error not_made(const Call& call, const Error& why) {
  return about(call, why.code(), fmt::format("function {} was not called on rank {}: {}", call.name, call.peer, why.sentence()))
      .with_cause(why);
}

Error timed_out(const Call& call) {
  return about(call, ErrorCode::kTimeout,
               fmt::format("the call of {} on rank {} did not end within {}", call.name, call.peer,
                           base::format_duration(call.limit.value_or(base::Duration::zero()))));
}

Error peer_gone(const Call& call, const Error& why) {
  return about(call, ErrorCode::kPeerLost,
               fmt::format("rank {} was gone before the call of {} ended: {}", call.peer, call.name, why.sentence()))
      .with_cause(why);
}

Error cancelled(const Call& call) {
  return about(call, ErrorCode::kCancelled, fmt::format("the call of {} on rank {} was cancelled", call.name, call.peer));
}

}  // namespace nexar::rpc
