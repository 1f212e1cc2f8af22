// How a rank takes its place in a collective that it cannot take part in.
#include "runtime/collective_state.h"

namespace nexar {
namespace {

OperationId operation_of(std::string_view name) {
  for (std::uint8_t id = 1; id <= kOperationIdMax; ++id)
    if (to_string(static_cast<OperationId>(id)) == name) return static_cast<OperationId>(id);
  return OperationId::kBarrier;
}

// What the others may ask about it: the operation with whatever belongs to it.
wire::CallDescriptor some_call(OperationId operation) {
  wire::CallDescriptor call{.operation = operation};
  for (int form = 0; form < 8 && call.fault() != nullptr; ++form) {
    call.dtype = (form & 1) != 0 ? std::optional(DataType::kU8) : std::nullopt;
    call.op = (form & 2) != 0 ? std::optional(ReduceOp::kSum) : std::nullopt;
    call.root = (form & 4) != 0 ? 0 : -1;
  }
  return call;
}

}  // namespace

Operation Group::start_decline(const Error& reason, std::string_view call) const {
  const OperationId operation = operation_of(call);
  return runtime::start_collective(core_, *record_, operation, {}, [&](runtime::CollectiveState& state) {
    state.call().descriptor = some_call(operation);
    state.refuse(reason);
  });
}

}  // namespace nexar
