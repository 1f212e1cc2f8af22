// Functions that other ranks call: what names them, what runs them, and what they are told about a call.
#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nexar/export.h"
#include "nexar/ids.h"
#include "nexar/result.h"

namespace nexar {

// Which function: a name or a number, the same on every rank.
//
// Names have a scope, so that two libraries in one process cannot take each other's: Function("metrics", "push") is not Function("push"),
// which belongs to the application. Scopes that begin with `nexar` are the runtime's own. Names and numbers never meet either.
class NEXAR_API Function {
 public:
  // A number below 2^63; others are refused where they are used.
  template <std::integral I>
  Function(I id) : Function(Number{static_cast<std::uint64_t>(id)}) {}  // NOLINT: a number is a function

  Function(const char* name) : Function(std::string_view(), name) {}         // NOLINT: so is a name
  Function(const std::string& name) : Function(std::string_view(), name) {}  // NOLINT
  Function(std::string_view name) : Function(std::string_view(), name) {}    // NOLINT
  Function(std::string_view scope, std::string_view name);

  // How it is known on the wire: the number, or a digest of scope and name.
  std::uint64_t key() const { return key_; }

  const std::string& scope() const { return scope_; }

  // For people: `push`, `metrics/push`, `#7`.
  const std::string& text() const { return text_; }

  // Whether it can be one: a name that is not empty, a number that is not too large.
  bool is_valid() const { return valid_; }

 private:
  struct Number {
    std::uint64_t value;
  };
  explicit Function(Number number);

  std::uint64_t key_ = 0;
  bool valid_ = true;
  std::string scope_;
  std::string text_;
};

// What a handler may know about the call that it serves. A copy may outlive the call.
class NEXAR_API RpcContext {
 public:
  using Clock = std::chrono::steady_clock;

  // Who calls, as a rank of the group that the function is registered with.
  Rank caller() const { return caller_; }

  // Whether nobody waits for the result any more: the caller cancelled, its deadline has passed, it is lost, or this node closes. A handler
  // that takes long asks now and then.
  bool cancelled() const { return cancelled_->load(std::memory_order_relaxed); }

  // When the caller stops waiting; nothing when it waits for ever.
  std::optional<Clock::time_point> deadline() const { return deadline_; }

  // For the runtime.
  RpcContext(Rank caller, std::shared_ptr<const std::atomic<bool>> cancelled, std::optional<Clock::time_point> deadline)
      : caller_(caller), cancelled_(std::move(cancelled)), deadline_(deadline) {}

 private:
  Rank caller_;
  std::shared_ptr<const std::atomic<bool>> cancelled_;
  std::optional<Clock::time_point> deadline_;
};

// Gets the arguments, which are valid during the call, and returns the result. Several run at once, on threads of the node's pool. An Error
// that it returns, or an exception that it throws, reaches the caller as the cause of a kRefused.
using RpcHandler = std::function<Result<std::vector<std::byte>>(const RpcContext& context, std::span<const std::byte> arguments)>;

struct ServeOptions {
  // Runs inside the runtime, one at a time, without a thread of the pool: for handlers of some microseconds. Such a one may not block or
  // call nexar, which is refused.
  bool quick = false;
};

}  // namespace nexar
