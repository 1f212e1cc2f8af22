// The calls over devices that move elements and compute nothing.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "nexar/device_group.h"
#include "tensor/staged_call.h"

namespace nexar {

using tensor::host_address;
using tensor::host_reaches;
using tensor::Piece;
using tensor::Slices;
using tensor::StagedCall;

namespace {

std::uint64_t width_of(const Group& group) { return static_cast<std::uint64_t>(group.size()); }

}  // namespace

Result<void> DeviceGroup::broadcast(const Buffer<Device>& buffer, std::uint64_t count, DataType type, Rank root,
                                    const CallOptions& options) const {
  if (host_reaches(buffer)) return group_.broadcast(host_address(buffer), count, type, root, options);
  const bool is_root = group_.rank() == root;
  StagedCall call{.name = "broadcast",
                  .type = type,
                  .send = buffer,
                  .in = is_root ? Slices::one(count) : Slices(),
                  .recv = buffer,
                  .out = is_root ? Slices() : Slices::one(count),
                  .longest = count,
                  .in_place = true,
                  .options = options};
  call.start = [&](const Piece& piece) { return group_.start_broadcast(piece.in, piece.count, type, root, piece.options); };
  return tensor::run(call, group_, options_);
}

Result<void> DeviceGroup::all_gather(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                                     const CallOptions& options) const {
  if (host_reaches(send) && host_reaches(recv)) return group_.all_gather(host_address(send), host_address(recv), count, type, options);
  StagedCall call{.name = "all_gather",
                  .type = type,
                  .send = send,
                  .in = Slices::one(count),
                  .recv = recv,
                  .out = Slices::even(group_.size(), count),
                  .longest = count,
                  .width = width_of(group_),
                  .options = options};
  call.start = [&](const Piece& piece) { return group_.start_all_gather(piece.in, piece.out, piece.count, type, piece.options); };
  return tensor::run(call, group_, options_);
}

Result<void> DeviceGroup::all_gather_v(const Buffer<Device>& send, const Buffer<Device>& recv, std::span<const std::uint64_t> counts,
                                       DataType type, const CallOptions& options) const {
  const bool wrong = counts.size() != width_of(group_);  // which the call itself says
  if (wrong || (host_reaches(send) && host_reaches(recv)))
    return group_.all_gather_v(host_address(send), host_address(recv), counts, type, options);
  StagedCall call{.name = "all_gather_v",
                  .type = type,
                  .send = send,
                  .in = Slices::one(counts[static_cast<std::size_t>(group_.rank())]),
                  .recv = recv,
                  .out = Slices(counts),
                  .longest = Slices(counts).longest(),
                  .width = width_of(group_),
                  .options = options};
  call.start = [&](const Piece& piece) { return group_.start_all_gather_v(piece.in, piece.out, piece.out_counts, type, piece.options); };
  return tensor::run(call, group_, options_);
}

Result<void> DeviceGroup::gather(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type, Rank root,
                                 const CallOptions& options) const {
  if (host_reaches(send) && host_reaches(recv)) return group_.gather(host_address(send), host_address(recv), count, type, root, options);
  StagedCall call{.name = "gather",
                  .type = type,
                  .send = send,
                  .in = Slices::one(count),
                  .recv = recv,
                  .out = group_.rank() == root ? Slices::even(group_.size(), count) : Slices(),
                  .longest = count,
                  .width = width_of(group_),
                  .options = options};
  call.start = [&](const Piece& piece) { return group_.start_gather(piece.in, piece.out, piece.count, type, root, piece.options); };
  return tensor::run(call, group_, options_);
}

Result<void> DeviceGroup::scatter(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type, Rank root,
                                  const CallOptions& options) const {
  if (host_reaches(send) && host_reaches(recv)) return group_.scatter(host_address(send), host_address(recv), count, type, root, options);
  StagedCall call{.name = "scatter",
                  .type = type,
                  .send = send,
                  .in = group_.rank() == root ? Slices::even(group_.size(), count) : Slices(),
                  .recv = recv,
                  .out = Slices::one(count),
                  .longest = count,
                  .width = width_of(group_),
                  .options = options};
  call.start = [&](const Piece& piece) { return group_.start_scatter(piece.in, piece.out, piece.count, type, root, piece.options); };
  return tensor::run(call, group_, options_);
}

Result<void> DeviceGroup::all_to_all(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                                     const CallOptions& options) const {
  if (host_reaches(send) && host_reaches(recv)) return group_.all_to_all(host_address(send), host_address(recv), count, type, options);
  StagedCall call{.name = "all_to_all",
                  .type = type,
                  .send = send,
                  .in = Slices::even(group_.size(), count),
                  .recv = recv,
                  .out = Slices::even(group_.size(), count),
                  .longest = count,
                  .width = width_of(group_),
                  .options = options};
  call.start = [&](const Piece& piece) { return group_.start_all_to_all(piece.in, piece.out, piece.count, type, piece.options); };
  return tensor::run(call, group_, options_);
}

// How many pieces the calls below have follows from counts that no rank knows alone: the longest of all is agreed on first.
Result<std::uint64_t> DeviceGroup::longest_anywhere(std::string_view call, std::uint64_t count, const std::optional<Error>& error,
                                                    const CallOptions& options) const {
  Operation agreement =
      error ? group_.start_decline(*error, call) : group_.start_all_reduce(&count, &count, 1, DataType::kU64, ReduceOp::kMax, options);
  Result<Status> result = agreement.wait();
  if (!result) return std::move(result).error();
  return count;
}

Result<void> DeviceGroup::gather_v(const Buffer<Device>& send, std::uint64_t count, const Buffer<Device>& recv,
                                   std::span<const std::uint64_t> counts, DataType type, Rank root, const CallOptions& options) const {
  if (host_reaches(send) && host_reaches(recv))
    return group_.gather_v(host_address(send), count, host_address(recv), counts, type, root, options);
  const bool is_root = group_.rank() == root;
  std::optional<Error> error;
  if (is_root && counts.size() != width_of(group_))
    error = Error(ErrorCode::kInvalidArgument, fmt::format("gather_v: {} counts for {} ranks", counts.size(), group_.size()));
  Result<std::uint64_t> longest = longest_anywhere("gather_v", std::max(count, is_root ? Slices(counts).longest() : 0), error, options);
  if (!longest) return std::move(longest).error();
  StagedCall call{.name = "gather_v",
                  .type = type,
                  .send = send,
                  .in = Slices::one(count),
                  .recv = recv,
                  .out = is_root ? Slices(counts) : Slices(),
                  .longest = *longest,
                  .width = width_of(group_),
                  .options = options};
  call.start = [&](const Piece& piece) {
    return group_.start_gather_v(piece.in, piece.in_counts.front(), piece.out, piece.out_counts, type, root, piece.options);
  };
  return tensor::run(call, group_, options_);
}

Result<void> DeviceGroup::scatter_v(const Buffer<Device>& send, std::span<const std::uint64_t> counts, const Buffer<Device>& recv,
                                    std::uint64_t count, DataType type, Rank root, const CallOptions& options) const {
  if (host_reaches(send) && host_reaches(recv))
    return group_.scatter_v(host_address(send), counts, host_address(recv), count, type, root, options);
  const bool is_root = group_.rank() == root;
  std::optional<Error> error;
  if (is_root && counts.size() != width_of(group_))
    error = Error(ErrorCode::kInvalidArgument, fmt::format("scatter_v: {} counts for {} ranks", counts.size(), group_.size()));
  Result<std::uint64_t> longest = longest_anywhere("scatter_v", std::max(count, is_root ? Slices(counts).longest() : 0), error, options);
  if (!longest) return std::move(longest).error();
  StagedCall call{.name = "scatter_v",
                  .type = type,
                  .send = send,
                  .in = is_root ? Slices(counts) : Slices(),
                  .recv = recv,
                  .out = Slices::one(count),
                  .longest = *longest,
                  .width = width_of(group_),
                  .options = options};
  call.start = [&](const Piece& piece) {
    return group_.start_scatter_v(piece.in, piece.in_counts, piece.out, piece.out_counts.front(), type, root, piece.options);
  };
  return tensor::run(call, group_, options_);
}

Result<void> DeviceGroup::all_to_all_v(const Buffer<Device>& send, std::span<const std::uint64_t> send_counts, const Buffer<Device>& recv,
                                       std::span<const std::uint64_t> recv_counts, DataType type, const CallOptions& options) const {
  if (host_reaches(send) && host_reaches(recv))
    return group_.all_to_all_v(host_address(send), send_counts, host_address(recv), recv_counts, type, options);
  std::optional<Error> error;
  if (send_counts.size() != width_of(group_) || recv_counts.size() != width_of(group_))
    error = Error(ErrorCode::kInvalidArgument,
                  fmt::format("all_to_all_v: {} and {} counts for {} ranks", send_counts.size(), recv_counts.size(), group_.size()));
  Result<std::uint64_t> longest =
      longest_anywhere("all_to_all_v", std::max(Slices(send_counts).longest(), Slices(recv_counts).longest()), error, options);
  if (!longest) return std::move(longest).error();
  StagedCall call{.name = "all_to_all_v",
                  .type = type,
                  .send = send,
                  .in = Slices(send_counts),
                  .recv = recv,
                  .out = Slices(recv_counts),
                  .longest = *longest,
                  .width = width_of(group_),
                  .options = options};
  call.start = [&](const Piece& piece) {
    return group_.start_all_to_all_v(piece.in, piece.in_counts, piece.out, piece.out_counts, type, piece.options);
  };
  return tensor::run(call, group_, options_);
}

}  // namespace nexar
