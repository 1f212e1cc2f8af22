#include "nexar/reduce_op.h"

#include <fmt/format.h>

namespace nexar {
namespace {

// By number.
constexpr std::array<std::string_view, kReduceOps.size()> kNames = {"sum", "prod", "min", "max", "avg", "and", "or", "xor"};

bool is_bitwise(ReduceOp op) { return op == ReduceOp::kAnd || op == ReduceOp::kOr || op == ReduceOp::kXor; }

}  // namespace

std::string_view to_string(ReduceOp op) {
  const auto index = static_cast<std::size_t>(op);
  return index < kNames.size() ? kNames[index] : "unknown";
}

Result<ReduceOp> reduce_op_from(std::string_view name) {
  std::string known;
  for (const ReduceOp op : kReduceOps) {
    if (name == to_string(op)) return op;
    known += fmt::format(" {}", to_string(op));
  }
  return Error(ErrorCode::kInvalidArgument, fmt::format("unknown reduce op \"{}\"; known are{}", name, known));
}

Result<ReduceOp> reduce_op_from(std::uint8_t id) {
  if (id < kNames.size()) return static_cast<ReduceOp>(id);
  return Error(ErrorCode::kInvalidArgument, fmt::format("unknown reduce op number {}; the last known is {}", id, kNames.size() - 1));
}

Result<void> check_reducible(DataType type, ReduceOp op) {
  if (auto known = data_type_from(static_cast<std::uint8_t>(type)); !known) return std::move(known).error();
  if (auto known = reduce_op_from(static_cast<std::uint8_t>(op)); !known) return std::move(known).error();
  if (is_bitwise(op) && is_float(type))
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{} is bitwise and has no meaning on {}; use an integer type or bool", to_string(op), to_string(type)));
  if (op == ReduceOp::kAvg && type == DataType::kBool)
    return Error(ErrorCode::kInvalidArgument, "avg has no meaning on bool; use and, or, or an integer type");
  return {};
}

}  // namespace nexar
