// The calls over devices that move elements and compute nothing.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "nexar/device_group.h"
#include "tensor/staged_call.h"

namespace nexar {

using tensor::finish;
using tensor::Piece;
using tensor::Slices;
using tensor::StagedCall;

Operation DeviceGroup::start_broadcast(const Buffer<Device>& buffer, std::uint64_t count, DataType type, Rank root,
                                       const CallOptions& options) const {
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
  call.start = [group = group_, type, root](const Piece& piece) {
    return group.start_broadcast(piece.in, piece.count, type, root, piece.options);
  };
  return tensor::start(std::move(call), group_, options_);
}

Result<void> DeviceGroup::broadcast(const Buffer<Device>& buffer, std::uint64_t count, DataType type, Rank root,
                                    const CallOptions& options) const {
  if (const auto host = on_host(buffer, buffer)) return group_.broadcast(host->recv, count, type, root, options);
  return finish(start_broadcast(buffer, count, type, root, options));
}

Operation DeviceGroup::start_all_gather(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                                        const CallOptions& options) const {
  StagedCall call{.name = "all_gather",
                  .type = type,
                  .send = send,
                  .in = Slices::one(count),
                  .recv = recv,
                  .out = Slices::even(group_.size(), count),
                  .longest = count,
                  .width = width(),
                  .options = options};
  call.start = [group = group_, type](const Piece& piece) {
    return group.start_all_gather(piece.in, piece.out, piece.count, type, piece.options);
  };
  return tensor::start(std::move(call), group_, options_);
}

Result<void> DeviceGroup::all_gather(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                                     const CallOptions& options) const {
  if (const auto host = on_host(send, recv)) return group_.all_gather(host->send, host->recv, count, type, options);
  return finish(start_all_gather(send, recv, count, type, options));
}

Operation DeviceGroup::start_all_gather_v(const Buffer<Device>& send, const Buffer<Device>& recv, std::span<const std::uint64_t> counts,
                                          DataType type, const CallOptions& options) const {
  StagedCall call{.name = "all_gather_v",
                  .type = type,
                  .send = send,
                  .in = Slices::one(own(counts)),
                  .recv = recv,
                  .out = Slices(counts),
                  .longest = Slices(counts).longest(),
                  .width = width(),
                  .wrong = check_counts("all_gather_v", counts),
                  .options = options};
  call.start = [group = group_, type](const Piece& piece) {
    return group.start_all_gather_v(piece.in, piece.out, piece.out_counts, type, piece.options);
  };
  return tensor::start(std::move(call), group_, options_);
}

Result<void> DeviceGroup::all_gather_v(const Buffer<Device>& send, const Buffer<Device>& recv, std::span<const std::uint64_t> counts,
                                       DataType type, const CallOptions& options) const {
  if (const auto host = on_host(send, recv)) return group_.all_gather_v(host->send, host->recv, counts, type, options);
  return finish(start_all_gather_v(send, recv, counts, type, options));
}

Operation DeviceGroup::start_gather(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type, Rank root,
                                    const CallOptions& options) const {
  StagedCall call{.name = "gather",
                  .type = type,
                  .send = send,
                  .in = Slices::one(count),
                  .recv = recv,
                  .out = group_.rank() == root ? Slices::even(group_.size(), count) : Slices(),
                  .longest = count,
                  .width = width(),
                  .options = options};
  call.start = [group = group_, type, root](const Piece& piece) {
    return group.start_gather(piece.in, piece.out, piece.count, type, root, piece.options);
  };
  return tensor::start(std::move(call), group_, options_);
}

Result<void> DeviceGroup::gather(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type, Rank root,
                                 const CallOptions& options) const {
  if (const auto host = on_host(send, recv)) return group_.gather(host->send, host->recv, count, type, root, options);
  return finish(start_gather(send, recv, count, type, root, options));
}

Operation DeviceGroup::start_scatter(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type, Rank root,
                                     const CallOptions& options) const {
  StagedCall call{.name = "scatter",
                  .type = type,
                  .send = send,
                  .in = group_.rank() == root ? Slices::even(group_.size(), count) : Slices(),
                  .recv = recv,
                  .out = Slices::one(count),
                  .longest = count,
                  .width = width(),
                  .options = options};
  call.start = [group = group_, type, root](const Piece& piece) {
    return group.start_scatter(piece.in, piece.out, piece.count, type, root, piece.options);
  };
  return tensor::start(std::move(call), group_, options_);
}

Result<void> DeviceGroup::scatter(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type, Rank root,
                                  const CallOptions& options) const {
  if (const auto host = on_host(send, recv)) return group_.scatter(host->send, host->recv, count, type, root, options);
  return finish(start_scatter(send, recv, count, type, root, options));
}

Operation DeviceGroup::start_all_to_all(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                                        const CallOptions& options) const {
  StagedCall call{.name = "all_to_all",
                  .type = type,
                  .send = send,
                  .in = Slices::even(group_.size(), count),
                  .recv = recv,
                  .out = Slices::even(group_.size(), count),
                  .longest = count,
                  .width = width(),
                  .options = options};
  call.start = [group = group_, type](const Piece& piece) {
    return group.start_all_to_all(piece.in, piece.out, piece.count, type, piece.options);
  };
  return tensor::start(std::move(call), group_, options_);
}

Result<void> DeviceGroup::all_to_all(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                                     const CallOptions& options) const {
  if (const auto host = on_host(send, recv)) return group_.all_to_all(host->send, host->recv, count, type, options);
  return finish(start_all_to_all(send, recv, count, type, options));
}

// How many pieces the calls below have follows from counts that no rank knows alone: the longest of all is agreed on first.

Operation DeviceGroup::start_gather_v(const Buffer<Device>& send, std::uint64_t count, const Buffer<Device>& recv,
                                      std::span<const std::uint64_t> counts, DataType type, Rank root, const CallOptions& options) const {
  const bool is_root = group_.rank() == root;
  const Slices at_root = is_root ? Slices(counts) : Slices();
  StagedCall call{.name = "gather_v",
                  .type = type,
                  .send = send,
                  .in = Slices::one(count),
                  .recv = recv,
                  .out = at_root,
                  .longest = std::max(count, at_root.longest()),
                  .agrees = true,
                  .width = width(),
                  .wrong = is_root ? check_counts("gather_v", counts) : std::nullopt,
                  .options = options};
  call.start = [group = group_, type, root](const Piece& piece) {
    return group.start_gather_v(piece.in, piece.in_counts.front(), piece.out, piece.out_counts, type, root, piece.options);
  };
  return tensor::start(std::move(call), group_, options_);
}

Result<void> DeviceGroup::gather_v(const Buffer<Device>& send, std::uint64_t count, const Buffer<Device>& recv,
                                   std::span<const std::uint64_t> counts, DataType type, Rank root, const CallOptions& options) const {
  if (const auto host = on_host(send, recv)) return group_.gather_v(host->send, count, host->recv, counts, type, root, options);
  return finish(start_gather_v(send, count, recv, counts, type, root, options));
}

Operation DeviceGroup::start_scatter_v(const Buffer<Device>& send, std::span<const std::uint64_t> counts, const Buffer<Device>& recv,
                                       std::uint64_t count, DataType type, Rank root, const CallOptions& options) const {
  const bool is_root = group_.rank() == root;
  const Slices at_root = is_root ? Slices(counts) : Slices();
  StagedCall call{.name = "scatter_v",
                  .type = type,
                  .send = send,
                  .in = at_root,
                  .recv = recv,
                  .out = Slices::one(count),
                  .longest = std::max(count, at_root.longest()),
                  .agrees = true,
                  .width = width(),
                  .wrong = is_root ? check_counts("scatter_v", counts) : std::nullopt,
                  .options = options};
  call.start = [group = group_, type, root](const Piece& piece) {
    return group.start_scatter_v(piece.in, piece.in_counts, piece.out, piece.out_counts.front(), type, root, piece.options);
  };
  return tensor::start(std::move(call), group_, options_);
}

Result<void> DeviceGroup::scatter_v(const Buffer<Device>& send, std::span<const std::uint64_t> counts, const Buffer<Device>& recv,
                                    std::uint64_t count, DataType type, Rank root, const CallOptions& options) const {
  if (const auto host = on_host(send, recv)) return group_.scatter_v(host->send, counts, host->recv, count, type, root, options);
  return finish(start_scatter_v(send, counts, recv, count, type, root, options));
}

Operation DeviceGroup::start_all_to_all_v(const Buffer<Device>& send, std::span<const std::uint64_t> send_counts,
                                          const Buffer<Device>& recv, std::span<const std::uint64_t> recv_counts, DataType type,
                                          const CallOptions& options) const {
  std::optional<Error> wrong;
  if (send_counts.size() != width() || recv_counts.size() != width())
    wrong = Error(ErrorCode::kInvalidArgument,
                  fmt::format("all_to_all_v: {} and {} counts for {} ranks", send_counts.size(), recv_counts.size(), group_.size()));
  StagedCall call{.name = "all_to_all_v",
                  .type = type,
                  .send = send,
                  .in = Slices(send_counts),
                  .recv = recv,
                  .out = Slices(recv_counts),
                  .longest = std::max(Slices(send_counts).longest(), Slices(recv_counts).longest()),
                  .agrees = true,
                  .width = width(),
                  .wrong = std::move(wrong),
                  .options = options};
  call.start = [group = group_, type](const Piece& piece) {
    return group.start_all_to_all_v(piece.in, piece.in_counts, piece.out, piece.out_counts, type, piece.options);
  };
  return tensor::start(std::move(call), group_, options_);
}

Result<void> DeviceGroup::all_to_all_v(const Buffer<Device>& send, std::span<const std::uint64_t> send_counts, const Buffer<Device>& recv,
                                       std::span<const std::uint64_t> recv_counts, DataType type, const CallOptions& options) const {
  if (const auto host = on_host(send, recv)) return group_.all_to_all_v(host->send, send_counts, host->recv, recv_counts, type, options);
  return finish(start_all_to_all_v(send, send_counts, recv, recv_counts, type, options));
}

}  // namespace nexar
