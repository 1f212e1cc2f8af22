#include "tensor/staged_call.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "tensor/pipeline.h"

namespace nexar::tensor {
namespace {

using Clock = std::chrono::steady_clock;

// A deadline is of the whole call: a piece has what is left of it.
CallOptions options_now(const CallOptions& options, Clock::time_point began) {
  CallOptions now = options;
  if (now.deadline) now.deadline = std::max<std::chrono::nanoseconds>(*now.deadline - (Clock::now() - began), std::chrono::nanoseconds(1));
  return now;
}

Result<void> decline_all(const Group& group, std::string_view name, std::uint64_t pieces, Error error) {
  for (std::uint64_t i = 0; i < pieces; ++i) {
    Operation declined = group.start_decline(error, name);
    static_cast<void>(declined.wait().has_value());
  }
  return error;
}

}  // namespace

bool host_reaches(const Buffer<Device>& buffer) { return buffer.adapter() == nullptr || buffer.adapter()->host_addressable(); }

void* host_address(const Buffer<Device>& buffer) {
  return buffer.adapter() == nullptr ? nullptr : buffer.adapter()->host_address(buffer.at());
}

Result<void> check_buffer(std::string_view call, const Buffer<Device>& buffer, const Slices& slices, DataType type) {
  const std::optional<std::uint64_t> bytes = slices.bytes(size_of(type));
  if (!bytes) return Error(ErrorCode::kInvalidArgument, fmt::format("{}: a buffer would be longer than 2^64 bytes", call));
  if (*bytes == 0) return {};
  if (buffer.adapter() == nullptr || buffer.at().is_null())
    return Error(ErrorCode::kInvalidArgument, fmt::format("{}: a buffer is null and {} bytes long", call, *bytes));
  if (buffer.bytes() < *bytes)
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: a buffer of {} has {} bytes and needs {}", call, buffer.adapter()->name(), buffer.bytes(), *bytes));
  return {};
}

Result<void> run(const StagedCall& call, const Group& group, const DeviceGroupOptions& options) {
  const std::size_t element = size_of(call.type);
  const std::uint64_t piece_bytes = options.piece_bytes != 0 ? options.piece_bytes : 2 * group.config().pipeline_segment_bytes;
  const std::uint64_t elements = std::max<std::uint64_t>(1, piece_bytes / element / call.width);
  const std::uint64_t count = std::max<std::uint64_t>(1, call.longest / elements + (call.longest % elements != 0));

  for (const auto& [buffer, slices] : {std::pair(&call.send, &call.in), std::pair(&call.recv, &call.out)})
    if (auto checked = check_buffer(call.name, *buffer, *slices, call.type); !checked)
      return decline_all(group, call.name, count, std::move(checked).error());

  const Clock::time_point began = Clock::now();
  Pieces pieces;
  pieces.name = call.name;
  pieces.count = count;
  pieces.in_bytes = call.in.piece_bytes(elements, element);
  pieces.out_bytes = call.out.piece_bytes(elements, element);
  pieces.in_place = call.in_place;
  pieces.in = [&](std::uint64_t number) { return call.in.piece_regions(number, elements, call.send.at(), element); };
  pieces.out = [&](std::uint64_t number) { return call.out.piece_regions(number, elements, call.recv.at(), element); };
  pieces.start = [&](std::uint64_t number, std::byte* in, std::byte* out) {
    const std::uint64_t first = number * elements;
    return call.start({.first = first,
                       .count = std::min(elements, call.longest - std::min(call.longest, first)),
                       .in_counts = call.in.piece_counts(number, elements),
                       .out_counts = call.out.piece_counts(number, elements),
                       .in = in,
                       .out = out,
                       .options = options_now(call.options, began)});
  };
  return Pipeline(group, call.send, call.recv, std::move(pieces)).run(options.slots);
}

}  // namespace nexar::tensor
