#include "reduce/reducer.h"

#include <cstring>
#include <exception>
#include <limits>

#include <fmt/format.h>

#include "base/assert.h"
#include "reduce/float_environment.h"

namespace nexar::reduce {
namespace {

Error user_op_failed(const UserOp& op, const char* what) {
  return Error(ErrorCode::kInternal, fmt::format("user op {} threw: {}", op.name, what));
}

}  // namespace

Result<Reducer> Reducer::make(DataType type, ReduceOp op, const KernelTable& table) {
  if (auto checked = check_reducible(type, op); !checked) return std::move(checked).error();
  const Kernel kernel = table.at(type, op);
  NEXAR_ASSERT(kernel.pair != nullptr && kernel.many != nullptr, "every reducible combination has its kernels");
  return Reducer(type, kernel, op == ReduceOp::kAvg);
}

Result<Reducer> Reducer::make(DataType type, UserOp op) {
  if (auto known = data_type_from(static_cast<std::uint8_t>(type)); !known) return std::move(known).error();
  if (op.name.empty()) return Error(ErrorCode::kInvalidArgument, "a user op has no name; ranks compare it by name");
  if (op.function == nullptr) return Error(ErrorCode::kInvalidArgument, fmt::format("user op {} has no function", op.name));
  return Reducer(type, std::move(op));
}

Result<void> Reducer::combine(const void* left, const void* right, void* out, std::size_t count) const {
  if (user_ != nullptr) return run_user_op(left, right, out, count);
  const FloatEnvironment standard;
  kernel_.pair(left, right, out, count);
  return {};
}

Result<void> Reducer::combine_many(std::span<const void* const> sources, void* out, std::size_t count, std::uint64_t divisor,
                                   Store store) const {
  NEXAR_ASSERT(!sources.empty(), "there is something to reduce");
  NEXAR_ASSERT(divisor != 0 && divisor <= std::numeric_limits<Rank>::max(), "an average is over as many ranks as there can be");
  if (count == 0) return {};
  if (user_ == nullptr) {
    const FloatEnvironment standard;
    kernel_.many(sources.data(), sources.size(), out, count, divisor, store);
    return {};
  }
  if (sources.size() == 1) {
    if (out != sources[0]) std::memcpy(out, sources[0], count * size_of(type_));
    return {};
  }
  const void* left = sources[0];
  for (const void* right : sources.subspan(1)) {
    if (auto done = run_user_op(left, right, out, count); !done) return done;
    left = out;
  }
  return {};
}

Result<void> Reducer::finish(void* buffer, std::size_t count, std::uint64_t group_size) const {
  const void* source = buffer;
  return average_ ? combine_many({&source, 1}, buffer, count, group_size) : Result<void>();
}

Result<void> Reducer::run_user_op(const void* left, const void* right, void* out, std::size_t count) const {
  try {
    user_->function(left, right, out, count, type_);
    return {};
  } catch (const Exception& thrown) {
    return thrown.error();
  } catch (const std::exception& thrown) {
    return user_op_failed(*user_, thrown.what());
  } catch (...) {
    return user_op_failed(*user_, "something that is no std::exception");
  }
}

}  // namespace nexar::reduce
