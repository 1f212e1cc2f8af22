// Calls of functions on other ranks.
//
//   Rpc rpc = node.rpc();
//   rpc.serve("shout", [](const RpcContext&, std::span<const std::byte> text) -> Result<std::vector<std::byte>> { ... });
//   Result<std::vector<std::byte>> answer = rpc.call(1, "shout", text);
//
// or with types, named once for both ends (typed_rpc.h):
//
//   inline const TypedFunction<double(std::vector<float>, std::string)> kPush("push");
//   rpc.serve(kPush, [](const std::vector<float>& values, const std::string& name) { return store(name, values); });
//   Result<double> stored = rpc.call(1, kPush, values, "layer3");
//
// Nobody writes a loop: handlers run on the node's own threads (Config::rpc_workers) while the program does what it does. A handler may
// call nexar, and wait there: a spare thread takes its place meanwhile, up to Config::rpc_spare_workers.
//
// How a call fails:
//   kUnsupported      the rank has no such function
//   kRefused          the handler returned an error or threw; cause() is its error
//   kOverloaded       a limit is reached, here or there, as the sentence says; nothing has run
//   kTimeout          the deadline has passed
//   kPeerLost         the rank is lost, has left, or closes its node
//   kCancelled        this side ended it
//   kInvalidArgument  rank or function cannot be, or the call came from inside a callback or a quick handler
// Each names the function and the rank. A call whose rank is alive goes on when another rank is lost.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "nexar/export.h"
#include "nexar/group.h"
#include "nexar/ids.h"
#include "nexar/operation.h"
#include "nexar/result.h"
#include "nexar/rpc_handler.h"
#include "nexar/typed_rpc.h"

namespace nexar {

struct RpcOptions {
  // From now until the result is here; none: Config::rpc_timeout. A handler can see it.
  std::optional<std::chrono::nanoseconds> deadline{};
};

// A typed call on its way. Dropping it cancels the call.
template <typename R>
class TypedCall {
 public:
  bool done() const { return operation_.done(); }

  // The result, once; kTimeout after `limit`, which ends the call.
  Result<R> wait(std::optional<Operation::Duration> limit = std::nullopt) {
    Result<Status> ended = operation_.wait(limit);
    if (!ended) return std::move(ended).error();
    return decode_result<R>(function_, operation_.take_bytes());
  }

  // For callbacks and descriptors.
  Operation& operation() { return operation_; }

  TypedCall(TypedCall&&) noexcept = default;
  TypedCall& operator=(TypedCall&&) = delete;

 private:
  friend class Rpc;
  TypedCall(Function function, std::vector<std::byte> arguments) : function_(std::move(function)), arguments_(std::move(arguments)) {}

  Function function_;
  std::vector<std::byte> arguments_;  // outlive the operation
  Operation operation_;
};

// The functions of a node, or of a group: Node::rpc(), Group::rpc(). The two never mix: a function that is served on a group is called on
// that group, by its members' ranks there. A cheap handle; functions stay until they are withdrawn or the node is closed.
//
// Thread: any, several at once.
class NEXAR_API Rpc {
 public:
  // From here on calls of `function` run `handler`. kInvalidArgument when it is served already.
  Result<void> serve(const Function& function, RpcHandler handler, const ServeOptions& options = {}) const;

  // Later calls find no such function; those that run go on. kInvalidArgument when it is not served.
  Result<void> withdraw(const Function& function) const;

  // The result of `function` on `rank`, which may be this one. Arguments and results of any size, up to Config::rpc_bytes_per_peer.
  Result<std::vector<std::byte>> call(Rank rank, const Function& function, std::span<const std::byte> arguments,
                                      const RpcOptions& options = {}) const;

  // The same without waiting. The arguments' memory belongs to the operation until it is done; Operation::take_bytes() has the result.
  // Dropping the operation cancels the call, and tells the handler.
  Operation start_call(Rank rank, const Function& function, std::span<const std::byte> arguments, const RpcOptions& options = {}) const;

  // With types. The handler takes the arguments, with or without a `const RpcContext&` before them, and returns the result or a Result of
  // it.
  template <typename R, typename... Args, typename F>
  Result<void> serve(const TypedFunction<R(Args...)>& function, F handler, const ServeOptions& options = {}) const {
    return serve(static_cast<const Function&>(function), typed_handler<R, Args...>(function, std::move(handler)), options);
  }

  template <typename R, typename... Args>
  Result<R> call(Rank rank, const TypedFunction<R(Args...)>& function, const std::type_identity_t<Args>&... arguments) const {
    return call_within(RpcOptions(), rank, function, arguments...);
  }
  template <typename R, typename... Args>
  Result<R> call_within(const RpcOptions& options, Rank rank, const TypedFunction<R(Args...)>& function,
                        const std::type_identity_t<Args>&... arguments) const {
    Result<std::vector<std::byte>> result = call(rank, static_cast<const Function&>(function), encode_all(arguments...), options);
    if (!result) return std::move(result).error();
    return decode_result<R>(function, *result);
  }

  template <typename R, typename... Args>
  TypedCall<R> start_call(Rank rank, const TypedFunction<R(Args...)>& function, const std::type_identity_t<Args>&... arguments) const {
    TypedCall<R> call(function, encode_all(arguments...));
    call.operation_ = start_call(rank, static_cast<const Function&>(function), call.arguments_);
    return call;
  }

  // For the runtime.
  Rpc(std::shared_ptr<runtime::NodeCore> core, Group group, std::uint64_t scope)
      : core_(std::move(core)), group_(std::move(group)), scope_(scope) {}

 private:
  std::shared_ptr<runtime::NodeCore> core_;
  Group group_;          // whose ranks are meant
  std::uint64_t scope_;  // its id; 0 for the node's own functions
};

}  // namespace nexar
