// Runs handlers: what they throw ends here.
#pragma once

#include <memory>
#include <optional>

#include "base/bytes.h"
#include "nexar/result.h"
#include "nexar/rpc_handler.h"
#include "rpc/served_table.h"

namespace nexar::rpc {

// The result, or an error; an exception becomes one, with its text.
Result<std::vector<std::byte>> run_guarded(const Registered& function, const RpcContext& context, base::ByteView arguments);

// Runs the call that a worker has taken, and sets its outcome. One that nobody waits for any more does not run.
void run_handler(Served& served);

// The same point in time, as a handler reads it: the real clock of io and the steady one of the standard library are one clock of the
// kernel's.
std::optional<RpcContext::Clock::time_point> to_clock(base::Time deadline);

}  // namespace nexar::rpc
