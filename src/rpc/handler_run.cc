#include "rpc/handler_run.h"

#include <exception>
#include <string>
#include <typeinfo>
#include <utility>

#include <fmt/format.h>

namespace nexar::rpc {

Result<std::vector<std::byte>> run_guarded(const Registered& function, const RpcContext& context, base::ByteView arguments) {
  try {
    return function.handler(context, arguments);
  } catch (const Exception& exception) {
    return exception.error();
  } catch (const std::exception& exception) {
    return Error(ErrorCode::kRefused, fmt::format("function {} threw: {}", function.name, exception.what()));
  } catch (...) {
    return Error(ErrorCode::kRefused, fmt::format("function {} threw something that is no std::exception", function.name));
  }
}

void run_handler(Served& served) {
  if (served.cancelled.load(std::memory_order_relaxed)) {
    served.outcome.emplace(
        Error(ErrorCode::kCancelled, fmt::format("function {} did not run: nobody waits for it", served.function->name)));
    return;
  }
  // The context shares the call, of which the token is a part.
  const std::shared_ptr<Served> shared = served.shared_from_this();
  const RpcContext context(served.caller_in_group, std::shared_ptr<const std::atomic<bool>>(shared, &served.cancelled),
                           served.clock_deadline);
  served.outcome.emplace(run_guarded(*served.function, context, served.arguments));
}

std::optional<RpcContext::Clock::time_point> to_clock(base::Time deadline) {
  if (deadline == base::Time::max()) return std::nullopt;
  return RpcContext::Clock::time_point(deadline.time_since_epoch());
}

}  // namespace nexar::rpc
