// Reductions over devices; device_group_moves.cc has the calls that only move, device_group_lists.cc lists and messages.
//
// A start_ form says what the call is and how a piece of it is made. A blocking form is that and a wait; but where the host reaches the
// memory it is the group's own, which may run on the calling thread.
#include "nexar/device_group.h"

#include <utility>

#include <fmt/format.h>

#include "tensor/staged_call.h"

namespace nexar {

using tensor::finish;
using tensor::Piece;
using tensor::Slices;
using tensor::StagedCall;

namespace {

// A call that gets as many elements as it gives, in place or not.
StagedCall as_much_as_given(std::string_view name, const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count,
                            DataType type, const CallOptions& options) {
  return {.name = name,
          .type = type,
          .send = send,
          .in = Slices::one(count),
          .recv = recv,
          .out = Slices::one(count),
          .longest = count,
          .in_place = true,
          .options = options};
}

}  // namespace

DeviceGroup::DeviceGroup(Group group, DeviceGroupOptions options) : group_(std::move(group)), options_(options) {}

std::optional<DeviceGroup::OnHost> DeviceGroup::on_host(const Buffer<Device>& send, const Buffer<Device>& recv) const {
  const Buffer<Device> from = tensor::with_adapter(send, group_);
  const Buffer<Device> to = tensor::with_adapter(recv, group_);
  if (!tensor::host_reaches(from) || !tensor::host_reaches(to)) return std::nullopt;
  return OnHost{tensor::host_address(from), tensor::host_address(to)};
}

Operation DeviceGroup::start_all_reduce(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                                        const Reduction& op, const CallOptions& options) const {
  StagedCall call = as_much_as_given("all_reduce", send, recv, count, type, options);
  call.start = [group = group_, type, op](const Piece& piece) {
    return group.start_all_reduce(piece.in, piece.out, piece.count, type, op, piece.options);
  };
  return tensor::start(std::move(call), group_, options_);
}

Result<void> DeviceGroup::all_reduce(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                                     const Reduction& op, const CallOptions& options) const {
  if (const auto host = on_host(send, recv)) return group_.all_reduce(host->send, host->recv, count, type, op, options);
  return finish(start_all_reduce(send, recv, count, type, op, options));
}

Operation DeviceGroup::start_all_reduce(const Buffer<Device>& buffer, std::uint64_t count, DataType type, const Reduction& op,
                                        const CallOptions& options) const {
  return start_all_reduce(buffer, buffer, count, type, op, options);
}

Result<void> DeviceGroup::all_reduce(const Buffer<Device>& buffer, std::uint64_t count, DataType type, const Reduction& op,
                                     const CallOptions& options) const {
  return all_reduce(buffer, buffer, count, type, op, options);
}

Operation DeviceGroup::start_all_reduce_rs_ag(const Buffer<Device>& buffer, std::uint64_t count, DataType type, const Reduction& op,
                                              MiddleFunction middle, const CallOptions& options) const {
  StagedCall call = as_much_as_given("all_reduce_rs_ag", buffer, buffer, count, type, options);
  call.start = [group = group_, type, op, middle = std::move(middle)](const Piece& piece) {
    const auto middle_of_piece = [middle, begin = piece.first](void* elements, std::uint64_t first, std::uint64_t n) {
      if (middle) middle(elements, begin + first, n);
    };
    return group.start_all_reduce_rs_ag(piece.in, piece.count, type, op, middle_of_piece, piece.options);
  };
  return tensor::start(std::move(call), group_, options_);
}

Result<void> DeviceGroup::all_reduce_rs_ag(const Buffer<Device>& buffer, std::uint64_t count, DataType type, const Reduction& op,
                                           const MiddleFunction& middle, const CallOptions& options) const {
  if (const auto host = on_host(buffer, buffer)) return group_.all_reduce_rs_ag(host->recv, count, type, op, middle, options);
  return finish(start_all_reduce_rs_ag(buffer, count, type, op, middle, options));
}

Operation DeviceGroup::start_reduce(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                                    const Reduction& op, Rank root, const CallOptions& options) const {
  const bool is_root = group_.rank() == root;
  StagedCall call = as_much_as_given("reduce", send, recv, count, type, options);
  if (!is_root) call.out = Slices();
  call.start = [group = group_, type, op, root, is_root](const Piece& piece) {
    return group.start_reduce(piece.in, is_root ? piece.out : nullptr, piece.count, type, op, root, piece.options);
  };
  return tensor::start(std::move(call), group_, options_);
}

Result<void> DeviceGroup::reduce(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                                 const Reduction& op, Rank root, const CallOptions& options) const {
  if (const auto host = on_host(send, recv)) return group_.reduce(host->send, host->recv, count, type, op, root, options);
  return finish(start_reduce(send, recv, count, type, op, root, options));
}

Operation DeviceGroup::start_reduce_scatter(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                                            const Reduction& op, const CallOptions& options) const {
  StagedCall call{.name = "reduce_scatter",
                  .type = type,
                  .send = send,
                  .in = Slices::even(group_.size(), count),
                  .recv = recv,
                  .out = Slices::one(count),
                  .longest = count,
                  .width = width(),
                  .options = options};
  call.start = [group = group_, type, op](const Piece& piece) {
    return group.start_reduce_scatter(piece.in, piece.out, piece.count, type, op, piece.options);
  };
  return tensor::start(std::move(call), group_, options_);
}

Result<void> DeviceGroup::reduce_scatter(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                                         const Reduction& op, const CallOptions& options) const {
  if (const auto host = on_host(send, recv)) return group_.reduce_scatter(host->send, host->recv, count, type, op, options);
  return finish(start_reduce_scatter(send, recv, count, type, op, options));
}

// What this rank has of a list of one count for each; nothing of a list that is too short, which is wrong anyway.
std::uint64_t DeviceGroup::own(std::span<const std::uint64_t> counts) const {
  const auto rank = static_cast<std::size_t>(group_.rank());
  return rank < counts.size() ? counts[rank] : 0;
}

std::optional<Error> DeviceGroup::check_counts(std::string_view call, std::span<const std::uint64_t> counts) const {
  if (counts.size() == width()) return std::nullopt;
  return Error(ErrorCode::kInvalidArgument, fmt::format("{}: {} counts for {} ranks", call, counts.size(), group_.size()));
}

Operation DeviceGroup::start_reduce_scatter_v(const Buffer<Device>& send, const Buffer<Device>& recv, std::span<const std::uint64_t> counts,
                                              DataType type, const Reduction& op, const CallOptions& options) const {
  StagedCall call{.name = "reduce_scatter_v",
                  .type = type,
                  .send = send,
                  .in = Slices(counts),
                  .recv = recv,
                  .out = Slices::one(own(counts)),
                  .longest = Slices(counts).longest(),
                  .width = width(),
                  .wrong = check_counts("reduce_scatter_v", counts),
                  .options = options};
  call.start = [group = group_, type, op](const Piece& piece) {
    return group.start_reduce_scatter_v(piece.in, piece.out, piece.in_counts, type, op, piece.options);
  };
  return tensor::start(std::move(call), group_, options_);
}

Result<void> DeviceGroup::reduce_scatter_v(const Buffer<Device>& send, const Buffer<Device>& recv, std::span<const std::uint64_t> counts,
                                           DataType type, const Reduction& op, const CallOptions& options) const {
  if (const auto host = on_host(send, recv)) return group_.reduce_scatter_v(host->send, host->recv, counts, type, op, options);
  return finish(start_reduce_scatter_v(send, recv, counts, type, op, options));
}

Operation DeviceGroup::start_scan(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                                  const Reduction& op, const CallOptions& options) const {
  StagedCall call = as_much_as_given("scan", send, recv, count, type, options);
  call.start = [group = group_, type, op](const Piece& piece) {
    return group.start_scan(piece.in, piece.out, piece.count, type, op, piece.options);
  };
  return tensor::start(std::move(call), group_, options_);
}

Result<void> DeviceGroup::scan(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                               const Reduction& op, const CallOptions& options) const {
  if (const auto host = on_host(send, recv)) return group_.scan(host->send, host->recv, count, type, op, options);
  return finish(start_scan(send, recv, count, type, op, options));
}

Operation DeviceGroup::start_exclusive_scan(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                                            const Reduction& op, const CallOptions& options) const {
  StagedCall call = as_much_as_given("exclusive_scan", send, recv, count, type, options);
  call.start = [group = group_, type, op](const Piece& piece) {
    return group.start_exclusive_scan(piece.in, piece.out, piece.count, type, op, piece.options);
  };
  return tensor::start(std::move(call), group_, options_);
}

Result<void> DeviceGroup::exclusive_scan(const Buffer<Device>& send, const Buffer<Device>& recv, std::uint64_t count, DataType type,
                                         const Reduction& op, const CallOptions& options) const {
  if (const auto host = on_host(send, recv)) return group_.exclusive_scan(host->send, host->recv, count, type, op, options);
  return finish(start_exclusive_scan(send, recv, count, type, op, options));
}

}  // namespace nexar
