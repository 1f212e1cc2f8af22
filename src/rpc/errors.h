// How calls fail, in sentences that name the function, the rank and the cause.
#pragma once

#include "nexar/error.h"
#include "rpc/call_table.h"
#include "wire/rpc_messages.h"

namespace nexar::rpc {

// What the callee answered, as the caller is told: kUnsupported for a function that is not there, kRefused for a handler's error,
// kOverloaded, kTimeout, kCancelled, or the callee's own code when it refused the call as such.
Error answered(const Call& call, wire::RpcStatus status, const Error& error);

// The call was not made.
Error not_made(const Call& call, const Error& why);

// It ended here: its deadline has come; its peer is gone; its caller does not want it any more.
Error timed_out(const Call& call);
Error peer_gone(const Call& call, const Error& why);
Error cancelled(const Call& call);

}  // namespace nexar::rpc
