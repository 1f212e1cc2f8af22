// Functions with types: what is called and what is served agree because both use the same TypedFunction. rpc.h shows how.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "nexar/codec.h"
#include "nexar/result.h"
#include "nexar/rpc_handler.h"

namespace nexar {

template <typename Signature>
class TypedFunction;

// A function and its types, which codec.h must know. Ends that disagree are found out by the lengths, or not at all: whoever changes the
// types changes the name.
template <typename R, typename... Args>
class TypedFunction<R(Args...)> : public Function {
  static_assert((std::is_same_v<Args, std::decay_t<Args>> && ...), "arguments are values: they travel");

 public:
  using Function::Function;
};

// The result's bytes as a value; kMismatch names the function.
template <typename R>
Result<R> decode_result(const Function& function, std::span<const std::byte> bytes) {
  if constexpr (std::is_void_v<R>) {
    if (bytes.empty()) return {};
  } else {
    if (auto value = decode_all<R>(bytes)) return std::get<0>(*std::move(value));
  }
  return Error(ErrorCode::kMismatch, "the result of " + function.text() + " has " + std::to_string(bytes.size()) +
                                         " bytes, which are not of the type that is expected");
}

// A handler of bytes around one of values.
template <typename R, typename... Args, typename F>
RpcHandler typed_handler(const Function& function, F handler) {
  return [name = function.text(), handler = std::move(handler)](const RpcContext& context,
                                                                std::span<const std::byte> bytes) -> Result<std::vector<std::byte>> {
    auto arguments = decode_all<Args...>(bytes);
    if (!arguments)
      return Error(ErrorCode::kMismatch, "the arguments of " + name + " have " + std::to_string(bytes.size()) +
                                             " bytes, which are not of the types that are expected");
    const auto run = [&](auto&&... values) {
      if constexpr (std::is_invocable_v<const F&, const RpcContext&, decltype(values)...>)
        return handler(context, std::forward<decltype(values)>(values)...);
      else
        return handler(std::forward<decltype(values)>(values)...);
    };
    using Returned = decltype(std::apply(run, *std::move(arguments)));
    if constexpr (std::is_void_v<Returned>) {
      static_assert(std::is_void_v<R>, "the handler returns what the function does");
      std::apply(run, *std::move(arguments));
      return std::vector<std::byte>();
    } else if constexpr (std::is_same_v<Returned, Result<R>>) {
      Returned result = std::apply(run, *std::move(arguments));
      if (!result) return std::move(result).error();
      if constexpr (std::is_void_v<R>)
        return std::vector<std::byte>();
      else
        return encode_all<R>(*result);
    } else {
      return encode_all<R>(std::apply(run, *std::move(arguments)));
    }
  };
}

}  // namespace nexar
