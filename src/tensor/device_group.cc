// Reductions over devices, and what DeviceGroup's calls share; device_group_moves.cc has the calls that only move.
#include "nexar/device_group.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "tensor/staged_call.h"

namespace nexar {

using tensor::host_address;
using tensor::host_reaches;
using tensor::Piece;
using tensor::Slices;
using tensor::StagedCall;

DeviceGroup::DeviceGroup(Group group, DeviceGroupOptions options) : group_(std::move(group)), options_(options) {}

Result<void> DeviceGroup::all_reduce(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                                     const Reduction& op, const CallOptions& options) const {
  if (host_reaches(send) && host_reaches(recv)) return group_.all_reduce(host_address(send), host_address(recv), count, type, op, options);
  StagedCall call{.name = "all_reduce",
                  .type = type,
                  .send = send,
                  .in = Slices::one(count),
                  .recv = recv,
                  .out = Slices::one(count),
                  .longest = count,
                  .in_place = true,
                  .options = options};
  call.start = [&](const Piece& piece) { return group_.start_all_reduce(piece.in, piece.out, piece.count, type, op, piece.options); };
  return tensor::run(call, group_, options_);
}

Result<void> DeviceGroup::all_reduce(const Buffer<Device>& buffer, std::uint64_t count, DataType type, const Reduction& op,
                                     const CallOptions& options) const {
  return all_reduce(buffer, buffer, count, type, op, options);
}

Result<void> DeviceGroup::all_reduce_rs_ag(const Buffer<Device>& buffer, std::uint64_t count, DataType type, const Reduction& op,
                                           const MiddleFunction& middle, const CallOptions& options) const {
  if (host_reaches(buffer)) return group_.all_reduce_rs_ag(host_address(buffer), count, type, op, middle, options);
  StagedCall call{.name = "all_reduce_rs_ag",
                  .type = type,
                  .send = buffer,
                  .in = Slices::one(count),
                  .recv = buffer,
                  .out = Slices::one(count),
                  .longest = count,
                  .in_place = true,
                  .options = options};
  call.start = [&](const Piece& piece) {
    const auto middle_of_piece = [&middle, begin = piece.first](void* elements, std::uint64_t first, std::uint64_t n) {
      if (middle) middle(elements, begin + first, n);
    };
    return group_.start_all_reduce_rs_ag(piece.in, piece.count, type, op, middle_of_piece, piece.options);
  };
  return tensor::run(call, group_, options_);
}

Result<void> DeviceGroup::reduce(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                                 const Reduction& op, Rank root, const CallOptions& options) const {
  if (host_reaches(send) && host_reaches(recv))
    return group_.reduce(host_address(send), host_address(recv), count, type, op, root, options);
  const bool is_root = group_.rank() == root;
  StagedCall call{.name = "reduce",
                  .type = type,
                  .send = send,
                  .in = Slices::one(count),
                  .recv = recv,
                  .out = is_root ? Slices::one(count) : Slices(),
                  .longest = count,
                  .in_place = true,
                  .options = options};
  call.start = [&](const Piece& piece) {
    return group_.start_reduce(piece.in, is_root ? piece.out : nullptr, piece.count, type, op, root, piece.options);
  };
  return tensor::run(call, group_, options_);
}

Result<void> DeviceGroup::reduce_scatter(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                                         const Reduction& op, const CallOptions& options) const {
  if (host_reaches(send) && host_reaches(recv))
    return group_.reduce_scatter(host_address(send), host_address(recv), count, type, op, options);
  StagedCall call{.name = "reduce_scatter",
                  .type = type,
                  .send = send,
                  .in = Slices::even(group_.size(), count),
                  .recv = recv,
                  .out = Slices::one(count),
                  .longest = count,
                  .width = static_cast<std::uint64_t>(group_.size()),
                  .options = options};
  call.start = [&](const Piece& piece) { return group_.start_reduce_scatter(piece.in, piece.out, piece.count, type, op, piece.options); };
  return tensor::run(call, group_, options_);
}

Result<void> DeviceGroup::reduce_scatter_v(const Buffer<Device>& send, const Buffer<Device>& recv, std::span<const std::uint64_t> counts,
                                           DataType type, const Reduction& op, const CallOptions& options) const {
  const bool wrong = counts.size() != static_cast<std::size_t>(group_.size());  // which the call itself says
  if (wrong || (host_reaches(send) && host_reaches(recv)))
    return group_.reduce_scatter_v(host_address(send), host_address(recv), counts, type, op, options);
  StagedCall call{.name = "reduce_scatter_v",
                  .type = type,
                  .send = send,
                  .in = Slices(counts),
                  .recv = recv,
                  .out = Slices::one(counts[static_cast<std::size_t>(group_.rank())]),
                  .longest = Slices(counts).longest(),
                  .width = static_cast<std::uint64_t>(group_.size()),
                  .options = options};
  call.start = [&](const Piece& piece) {
    return group_.start_reduce_scatter_v(piece.in, piece.out, piece.in_counts, type, op, piece.options);
  };
  return tensor::run(call, group_, options_);
}

Result<void> DeviceGroup::scan(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                               const Reduction& op, const CallOptions& options) const {
  if (host_reaches(send) && host_reaches(recv)) return group_.scan(host_address(send), host_address(recv), count, type, op, options);
  StagedCall call{.name = "scan",
                  .type = type,
                  .send = send,
                  .in = Slices::one(count),
                  .recv = recv,
                  .out = Slices::one(count),
                  .longest = count,
                  .in_place = true,
                  .options = options};
  call.start = [&](const Piece& piece) { return group_.start_scan(piece.in, piece.out, piece.count, type, op, piece.options); };
  return tensor::run(call, group_, options_);
}

Result<void> DeviceGroup::exclusive_scan(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                                         const Reduction& op, const CallOptions& options) const {
  if (host_reaches(send) && host_reaches(recv))
    return group_.exclusive_scan(host_address(send), host_address(recv), count, type, op, options);
  StagedCall call{.name = "exclusive_scan",
                  .type = type,
                  .send = send,
                  .in = Slices::one(count),
                  .recv = recv,
                  .out = Slices::one(count),
                  .longest = count,
                  .in_place = true,
                  .options = options};
  call.start = [&](const Piece& piece) { return group_.start_exclusive_scan(piece.in, piece.out, piece.count, type, op, piece.options); };
  return tensor::run(call, group_, options_);
}

}  // namespace nexar
