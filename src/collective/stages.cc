#include "collective/stages.h"

#include <utility>

#include <fmt/format.h>

namespace nexar::collective {
namespace {

using enum OperationId;

std::optional<Stage> none() { return std::nullopt; }

}  // namespace

void Stages::begin(Call& call) {
  call_ = &call;
  begun_ = 0;
}

Result<std::optional<Stage>> Stages::next() {
  switch (call_->shape.operation) {
    case kAllReduceRsAg: return next_of_two_halves();
    case kBroadcastBytes:
    case kAllGatherBytes:
    case kGatherBytes: return next_of_strings();
    default: break;
  }
  if (begun_++ > 0) return none();
  return std::optional<Stage>({call_->shape, static_cast<const std::byte*>(call_->input), static_cast<std::byte*>(call_->output)});
}

// Both in place: the first names the buffer input, the second output.
Result<std::optional<Stage>> Stages::next_of_two_halves() {
  if (begun_ == 2) return none();
  Result<plan::ScatterGather> halves = plan::scatter_and_gather(call_->shape);
  if (!halves) return std::move(halves).error();
  auto* buffer = static_cast<std::byte*>(call_->output);
  if (begun_++ == 0) return std::optional<Stage>({std::move(halves->scatter), buffer, nullptr});
  if (call_->middle != nullptr && *call_->middle)
    (*call_->middle)(buffer + halves->own.first * call_->shape.element_bytes, halves->own.first, halves->own.count);
  return std::optional<Stage>({std::move(halves->gather), nullptr, buffer});
}

Result<std::optional<Stage>> Stages::next_of_strings() {
  switch (begun_++) {
    case 0: return lengths();
    case 1: return payload();
    default: take_strings(); return none();
  }
}

Result<std::optional<Stage>> Stages::lengths() {
  Result<plan::Shape> shape = plan::lengths_phase(call_->shape);
  if (!shape) return std::move(shape).error();
  const bool broadcasts = call_->shape.operation == kBroadcastBytes;
  own_length_ = call_->bytes.size();
  lengths_.assign(broadcasts ? 1 : static_cast<std::size_t>(call_->shape.size), 0);
  if (broadcasts && call_->shape.is_root()) lengths_[0] = own_length_;
  return std::optional<Stage>(
      {*std::move(shape), reinterpret_cast<const std::byte*>(&own_length_), reinterpret_cast<std::byte*>(lengths_.data()), false});
}

Result<std::optional<Stage>> Stages::payload() {
  const OperationId operation = call_->shape.operation;
  const bool gets_nothing = operation == kGatherBytes && !call_->shape.is_root();
  if (gets_nothing) lengths_.assign(1, own_length_);
  Result<plan::Shape> shape = plan::payload_phase(call_->shape, lengths_);
  if (!shape) return std::move(shape).error();
  std::uint64_t total = 0;
  for (const std::uint64_t length : lengths_) total += length;  // fits: the shape was checked
  if (!gets_nothing && total > call_->bytes_max)
    return Error(ErrorCode::kOverloaded,
                 fmt::format("{} would get {} bytes; the node's memory_budget is {}", to_string(operation), total, call_->bytes_max));
  joined_.clear();
  if (!gets_nothing) joined_.resize(static_cast<std::size_t>(total));
  if (operation == kBroadcastBytes && call_->shape.is_root()) joined_.assign(call_->bytes.begin(), call_->bytes.end());
  return std::optional<Stage>({*std::move(shape), call_->bytes.data(), joined_.data(), false});
}

void Stages::take_strings() {
  if (call_->shape.operation == kBroadcastBytes) {
    call_->string = std::exchange(joined_, {});
    return;
  }
  if (call_->shape.operation == kGatherBytes && !call_->shape.is_root()) return;
  auto next = joined_.begin();
  for (const std::uint64_t length : lengths_) {
    const auto end = next + static_cast<std::ptrdiff_t>(length);
    call_->strings.emplace_back(next, end);
    next = end;
  }
  joined_ = {};
}

}  // namespace nexar::collective
