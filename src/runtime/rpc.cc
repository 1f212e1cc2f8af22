#include "nexar/rpc.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "runtime/node_core.h"
#include "runtime/operation_state.h"

namespace nexar {
namespace {

using runtime::NodeCore;
using runtime::OperationState;

Error invalid(std::string sentence) { return Error(ErrorCode::kInvalidArgument, std::move(sentence)); }

Result<void> check_function(std::string_view call, const Function& function) {
  if (function.is_valid()) return {};
  return invalid(fmt::format("{}: \"{}\" is no function: a name is not empty, a number is less than 2^63", call, function.text()));
}

// Fills in a call; an error in the arguments leaves it as it was.
Result<void> prepare(const NodeCore& core, const Group& group, std::uint64_t scope, OperationState& operation, Rank rank,
                     const Function& function, std::span<const std::byte> arguments, const RpcOptions& options) {
  if (auto checked = core.check_call("call"); !checked) return checked;
  if (auto checked = check_function("call", function); !checked) return checked;
  const std::optional<Rank> peer = group.world_rank(rank);
  if (!peer) return invalid(fmt::format("call of {}: there is no rank {} in a group of {}", function.text(), rank, group.size()));
  if (options.deadline && *options.deadline <= std::chrono::nanoseconds::zero())
    return invalid(fmt::format("call of {}: a deadline is longer than nothing", function.text()));
  operation.kind = OperationState::Kind::kCall;
  operation.call.scope = scope;
  operation.call.peer = *peer;
  operation.call.function = function.key();
  operation.call.name = function.text();
  operation.call.arguments = arguments;
  operation.call.limit = options.deadline.value_or(core.config().rpc_timeout);
  return {};
}

}  // namespace

Rpc Group::rpc() const { return {core_, *this, id()}; }

Result<void> Rpc::serve(const Function& function, RpcHandler handler, const ServeOptions& options) const {
  if (auto checked = core_->check_call("serve"); !checked) return checked;
  if (auto checked = check_function("serve", function); !checked) return checked;
  if (handler == nullptr) return invalid(fmt::format("serve: function {} has no handler", function.text()));
  if (function.scope().starts_with("nexar")) return invalid(fmt::format("serve: {} is in a scope of the runtime's own", function.text()));
  return core_->serve(
      scope_, function,
      {.name = function.text(), .handler = std::move(handler), .quick = options.quick, .rank_of = [group = group_](Rank rank) {
         return group.rank_of(rank);
       }});
}

Result<void> Rpc::withdraw(const Function& function) const {
  if (auto checked = core_->check_call("withdraw"); !checked) return checked;
  return core_->withdraw(scope_, function);
}

Result<std::vector<std::byte>> Rpc::call(Rank rank, const Function& function, std::span<const std::byte> arguments,
                                         const RpcOptions& options) const {
  OperationState operation;
  if (auto prepared = prepare(*core_, group_, scope_, operation, rank, function, arguments, options); !prepared)
    return std::move(prepared).error();
  Result<Status> result = core_->run(operation, std::nullopt);
  if (!result) return std::move(result).error();
  return std::move(operation.owned);
}

Operation Rpc::start_call(Rank rank, const Function& function, std::span<const std::byte> arguments, const RpcOptions& options) const {
  auto state = std::make_shared<OperationState>();
  if (auto prepared = prepare(*core_, group_, scope_, *state, rank, function, arguments, options); !prepared) {
    state->result.emplace(std::move(prepared).error());
    state->completion.complete();
    return Operation(std::move(state));
  }
  state->core = core_;
  core_->start(*state);
  return Operation(std::move(state));
}

}  // namespace nexar
