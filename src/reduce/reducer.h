// A reduction of one element type by one op, resolved once and run many times.
//
// Thread: any; a Reducer is a value without state. Built-in ops never fail and never allocate; a user op fails with what it threw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "nexar/data_type.h"
#include "nexar/reduce_op.h"
#include "nexar/result.h"
#include "reduce/kernels.h"

namespace nexar::reduce {

class Reducer {
 public:
  // kInvalidArgument when the op has no meaning on the type, or the user op has no name or function. `table` is for tests.
  static Result<Reducer> make(DataType type, ReduceOp op, const KernelTable& table = kernels());
  static Result<Reducer> make(DataType type, UserOp op);

  DataType type() const { return type_; }
  bool commutes() const { return user_ == nullptr || user_->commutes; }

  // out[i] = op(left[i], right[i]) for any alignment. `out` is `left`, is `right`, or overlaps neither. avg only adds: see finish().
  Result<void> combine(const void* left, const void* right, void* out, std::size_t count) const;

  // out[i] = op(sources[0][i], sources[1][i], ...) from the left; small floats are accumulated in f32 and rounded once. avg is divided by
  // `divisor`, the number of ranks whose values the sources hold; other ops ignore it. At least one source; `out` is one of
  // them or overlaps none; for a user op with more than two sources it is the first or overlaps none.
  Result<void> combine_many(std::span<const void* const> sources, void* out, std::size_t count, std::uint64_t divisor = 1,
                            Store store = Store::kCached) const;

  // The division at the end of an avg over `group_size` ranks that was added up by combine(); other ops do nothing.
  Result<void> finish(void* buffer, std::size_t count, std::uint64_t group_size) const;

 private:
  Reducer(DataType type, Kernel kernel, bool average) : type_(type), kernel_(kernel), average_(average) {}
  Reducer(DataType type, UserOp op) : type_(type), user_(std::make_shared<const UserOp>(std::move(op))) {}

  Result<void> run_user_op(const void* left, const void* right, void* out, std::size_t count) const;

  DataType type_;
  Kernel kernel_;
  bool average_ = false;
  std::shared_ptr<const UserOp> user_;
};

}  // namespace nexar::reduce
