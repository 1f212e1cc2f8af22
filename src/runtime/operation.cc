#include "nexar/operation.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/node_core.h"
#include "runtime/operation_state.h"

namespace nexar {

using runtime::OperationState;

Operation::Operation() noexcept = default;
Operation::Operation(std::shared_ptr<OperationState> state) noexcept : state_(std::move(state)) {}
Operation::Operation(Operation&& other) noexcept = default;

Operation& Operation::operator=(Operation&& other) noexcept {
  if (this != &other) {
    cancel();
    state_ = std::move(other.state_);
  }
  return *this;
}

Operation::~Operation() { cancel(); }

bool Operation::done() const { return state_ == nullptr || state_->completion.is_done(); }

Result<Status> Operation::wait(std::optional<Duration> limit) {
  if (state_ == nullptr) return Status{};
  if (state_->completion.is_done()) return *state_->result;
  if (auto checked = state_->core->check_waitable("wait"); !checked) return std::move(checked).error();
  return state_->core->wait(*state_, limit);
}

void Operation::cancel() {
  if (!done()) cancel(Error(ErrorCode::kCancelled, "the operation was cancelled"));
}

void Operation::cancel(const Error& reason) {
  if (!done()) state_->core->cancel(*state_, reason);
}

void Operation::on_done(std::function<void(const Result<Status>&)> callback) {
  if (state_ == nullptr) return callback(Status{});
  if (state_->core == nullptr) return callback(*state_->result);
  state_->core->set_callback(*state_, std::move(callback));
}

Result<int> Operation::descriptor() {
  if (state_ == nullptr || state_->core == nullptr)
    return Error(ErrorCode::kInvalidArgument, "an operation that never began has no descriptor: it is done");
  return state_->core->descriptor(*state_);
}

std::vector<std::byte> Operation::take_bytes() {
  if (state_ == nullptr || !done()) return {};
  return std::exchange(state_->collective != nullptr ? state_->collective->string : state_->owned, {});
}

std::vector<std::vector<std::byte>> Operation::take_strings() {
  if (state_ == nullptr || !done() || state_->collective == nullptr) return {};
  return std::exchange(state_->collective->strings, {});
}

std::string Operation::algorithm() const {
  if (state_ == nullptr || !done() || state_->collective == nullptr) return {};
  const auto& [first, second] = state_->collective->ran;
  std::string name(first);
  if (!second.empty()) name.append("+").append(second);
  return name;
}

void OperationGroup::add(Operation operation) {
  operations_.push_back(std::move(operation));
  returned_.push_back(false);
}

Result<void> OperationGroup::wait_all(std::optional<Operation::Duration> limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit.value_or(Operation::Duration::zero());
  Result<void> first;
  for (Operation& operation : operations_) {
    std::optional<Operation::Duration> left;
    if (limit) left = std::max<Operation::Duration>(deadline - std::chrono::steady_clock::now(), Operation::Duration::zero());
    Result<Status> result = operation.wait(left);
    if (!result && first) first = std::move(result).error();
  }
  return first;
}

Result<std::size_t> OperationGroup::wait_any(std::optional<Operation::Duration> limit) {
  std::vector<OperationState*> pending;
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    if (returned_[i]) continue;
    if (operations_[i].done()) {
      returned_[i] = true;
      return i;
    }
    pending.push_back(operations_[i].state_.get());
    indices.push_back(i);
  }
  if (pending.empty()) return Error(ErrorCode::kInvalidArgument, "every operation of this group has been returned already");
  if (auto checked = pending.front()->core->check_waitable("wait_any"); !checked) return std::move(checked).error();
  const std::optional<std::size_t> found = pending.front()->core->wait_any(pending, limit);
  if (!found) return Error(ErrorCode::kTimeout, "no operation of the group ended in time");
  returned_[indices[*found]] = true;
  return indices[*found];
}

}  // namespace nexar
