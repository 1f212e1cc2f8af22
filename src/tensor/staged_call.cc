#include "tensor/staged_call.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "runtime/program.h"
#include "tensor/pipeline.h"

namespace nexar::tensor {
namespace {

// kInvalidArgument when `buffer` is too short for its slices, or nowhere.
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

std::optional<Error> what_is_wrong(const StagedCall& call) {
  if (call.wrong) return call.wrong;
  if (auto checked = check_buffer(call.name, call.send, call.in, call.type); !checked) return std::move(checked).error();
  if (auto checked = check_buffer(call.name, call.recv, call.out, call.type); !checked) return std::move(checked).error();
  return std::nullopt;
}

// All of it at once, where the host reaches it.
Operation start_whole(const StagedCall& call) {
  return call.start({.count = call.longest,
                     .in_counts = call.in.counts(),
                     .out_counts = call.out.counts(),
                     .in = static_cast<std::byte*>(host_address(call.send)),
                     .out = static_cast<std::byte*>(host_address(call.recv)),
                     .options = call.options});
}

std::uint64_t pieces_of(std::uint64_t longest, std::uint64_t elements) {
  return std::max<std::uint64_t>(1, longest / elements + (longest % elements != 0));
}

// How a call is cut. Kept by the pipeline's functions.
struct Cut {
  StagedCall call;
  CallClock clock;
  std::uint64_t elements;  // of a piece, of each slice

  Operation start(std::uint64_t number, std::byte* in, std::byte* out) const {
    const std::uint64_t first = number * elements;
    return call.start({.first = first,
                       .count = std::min(elements, call.longest - std::min(call.longest, first)),
                       .in_counts = call.in.piece_counts(number, elements),
                       .out_counts = call.out.piece_counts(number, elements),
                       .in = in,
                       .out = out,
                       .options = clock.options_now()});
  }
};

}  // namespace

CallClock::CallClock(const CallOptions& options) : options_(options), began_(std::chrono::steady_clock::now()) {}

CallOptions CallClock::options_now() const {
  CallOptions now = options_;
  if (now.deadline)
    now.deadline =
        std::max<std::chrono::nanoseconds>(*now.deadline - (std::chrono::steady_clock::now() - began_), std::chrono::nanoseconds(1));
  return now;
}

std::optional<std::chrono::steady_clock::time_point> CallClock::deadline() const {
  constexpr auto kNever = std::chrono::hours(24 * 365);  // more would not fit a clock
  if (!options_.deadline) return std::nullopt;
  return began_ + std::min<std::chrono::nanoseconds>(*options_.deadline, kNever);
}

std::uint64_t piece_bytes(const Group& group, const DeviceGroupOptions& options) {
  return options.piece_bytes != 0 ? options.piece_bytes : 2 * group.config().pipeline_segment_bytes;
}

Buffer<Device> with_adapter(const Buffer<Device>& buffer, const Group& group) {
  if (buffer.adapter() != nullptr || buffer.at().is_null()) return buffer;
  return Buffer<Device>(group.adapter(), buffer.at(), buffer.bytes(), buffer.stream());
}

bool host_reaches(const Buffer<Device>& buffer) { return buffer.adapter() == nullptr || buffer.adapter()->host_addressable(); }

void* host_address(const Buffer<Device>& buffer) {
  return buffer.adapter() == nullptr ? nullptr : buffer.adapter()->host_address(buffer.at());
}

Operation start(StagedCall call, const Group& group, const DeviceGroupOptions& options) {
  call.send = with_adapter(call.send, group);
  call.recv = with_adapter(call.recv, group);
  if (host_reaches(call.send) && host_reaches(call.recv)) return start_whole(call);

  const std::size_t element = size_of(call.type);
  const std::uint64_t elements = std::max<std::uint64_t>(1, piece_bytes(group, options) / element / call.width);
  std::optional<Error> wrong = what_is_wrong(call);
  auto cut = std::make_shared<Cut>(std::move(call), CallClock(call.options), elements);
  Pieces pieces;
  pieces.name = cut->call.name;
  pieces.count = pieces_of(cut->call.longest, elements);
  pieces.in_bytes = cut->call.in.piece_bytes(elements, element);
  pieces.out_bytes = cut->call.out.piece_bytes(elements, element);
  pieces.in_place = cut->call.in_place;
  pieces.in = [cut, element](std::uint64_t number) {
    return cut->call.in.piece_regions(number, cut->elements, cut->call.send.at(), element);
  };
  pieces.out = [cut, element](std::uint64_t number) {
    return cut->call.out.piece_regions(number, cut->elements, cut->call.recv.at(), element);
  };
  pieces.start = [cut](std::uint64_t number, std::byte* in, std::byte* out) { return cut->start(number, in, out); };
  pieces.deadline = cut->clock.deadline();
  if (cut->call.agrees) {
    pieces.agree = [cut, group] {
      std::uint64_t* longest = &cut->call.longest;
      return group.start_all_reduce(longest, longest, 1, DataType::kU64, ReduceOp::kMax);
    };
    pieces.agreed = [cut] { return pieces_of(cut->call.longest, cut->elements); };
  }
  return runtime::start_program(
      group, std::make_shared<Pipeline>(group, cut->call.send, cut->call.recv, std::move(pieces), options.slots, std::move(wrong)));
}

Result<void> finish(Operation operation) {
  Result<Status> result = operation.wait();
  if (!result) return std::move(result).error();
  return {};
}

}  // namespace nexar::tensor
