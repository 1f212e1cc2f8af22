// How values of several ranks become one.
//
// Every op is elementwise. Integers wrap; f32 and f64 follow IEEE 754; the 16- and 8-bit floats are widened to f32, reduced and rounded
// to nearest even. min and max propagate NaN and order -0 before +0. avg is a sum and one division at the end, truncating towards zero
// for integers. On bool, any non-zero byte is true, sum is or, prod is and, min is and, max is or.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "nexar/data_type.h"
#include "nexar/export.h"
#include "nexar/result.h"

namespace nexar {

// The numbers travel on the wire and never change; new ops follow at the end.
enum class ReduceOp : std::uint8_t {
  kSum = 0,
  kProd = 1,
  kMin = 2,
  kMax = 3,
  kAvg = 4,
  kAnd = 5,
  kOr = 6,
  kXor = 7,
};

inline constexpr std::array<ReduceOp, 8> kReduceOps = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMin, ReduceOp::kMax,
                                                       ReduceOp::kAvg, ReduceOp::kAnd,  ReduceOp::kOr,  ReduceOp::kXor};

// The name as it is written everywhere: "sum", "xor".
NEXAR_API std::string_view to_string(ReduceOp op);

// The op of that name, or of that number; kInvalidArgument naming what was given when there is none.
NEXAR_API Result<ReduceOp> reduce_op_from(std::string_view name);
NEXAR_API Result<ReduceOp> reduce_op_from(std::uint8_t id);

// Whether `op` has a meaning on `type`: bitwise ops have none on floats, avg none on bool. kInvalidArgument names both.
NEXAR_API Result<void> check_reducible(DataType type, ReduceOp op);

// An op of the application's own: out[i] = function(left[i], right[i]).
//
// Every rank of a group gives the same name and function. An op that does not commute runs only where the order of ranks is kept, with
// `left` always from lower ranks. The function runs inside the runtime: it may not block or call nexar; what it throws ends the
// operation with an error.
struct UserOp {
  // `out` is the same memory as `left` or as `right`, or overlaps neither.
  using Function = std::function<void(const void* left, const void* right, void* out, std::size_t count, DataType type)>;

  std::string name;
  Function function;
  bool commutes = true;
};

// A UserOp over one element type, written with spans:
//
//   auto longest = user_op<float>("longest", true, [](std::span<const float> a, std::span<const float> b, std::span<float> out) {...});
//
// Used on another type it ends the operation with kInvalidArgument.
template <Element T, typename F>
requires std::is_invocable_v<F&, std::span<const T>, std::span<const T>, std::span<T>> UserOp user_op(std::string name, bool commutes,
                                                                                                      F function) {
  auto untyped = [name, function = std::move(function)](const void* left, const void* right, void* out, std::size_t count,
                                                        DataType type) mutable {
    if (type != data_type_of<T>)
      throw Exception(Error(ErrorCode::kInvalidArgument, "user op " + name + " reduces " + std::string(to_string(data_type_of<T>)) +
                                                             ", but the buffer holds " + std::string(to_string(type))));
    function(std::span(static_cast<const T*>(left), count), std::span(static_cast<const T*>(right), count),
             std::span(static_cast<T*>(out), count));
  };
  return UserOp{std::move(name), std::move(untyped), commutes};
}

}  // namespace nexar
