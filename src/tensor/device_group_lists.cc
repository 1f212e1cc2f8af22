// Lists of buffers over devices, and messages.
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "nexar/device_group.h"
#include "runtime/program.h"
#include "tensor/device_message.h"
#include "tensor/pipeline.h"
#include "tensor/staged_call.h"

namespace nexar {
namespace {

using tensor::DeviceMessage;
using tensor::host_address;
using tensor::host_reaches;

// Many buffers seen as one after the other.
class Concatenation {
 public:
  Concatenation(const Concatenation&) = delete;
  Concatenation& operator=(const Concatenation&) = delete;
  explicit Concatenation(std::vector<Buffer<Device>> buffers) : buffers_(std::move(buffers)) {
    for (const Buffer<Device>& buffer : buffers_) {
      if (buffer.bytes() > 0 && !first_) first_ = &buffer;
      bytes_ = buffer.bytes() > std::numeric_limits<std::uint64_t>::max() - bytes_ ? std::numeric_limits<std::uint64_t>::max()
                                                                                   : bytes_ + buffer.bytes();
    }
  }

  std::uint64_t bytes() const { return bytes_; }
  Buffer<Device> representative() const { return first_ != nullptr ? *first_ : Buffer<Device>(); }

  std::optional<Error> what_is_wrong(DataType type) const {
    for (const Buffer<Device>& buffer : buffers_) {
      if (buffer.bytes() == 0) continue;
      if (buffer.adapter() == nullptr || buffer.at().is_null())
        return invalid(fmt::format("a buffer is null and {} bytes long", buffer.bytes()));
      if (buffer.adapter() != first_->adapter() || buffer.stream() != first_->stream())
        return invalid(fmt::format("a buffer of {} is of another adapter or stream than the first, of {}", buffer.adapter()->name(),
                                   first_->adapter()->name()));
      if (buffer.bytes() % size_of(type) != 0)
        return invalid(fmt::format("{} bytes are no whole number of elements of {}", buffer.bytes(), to_string(type)));
    }
    return std::nullopt;
  }

  // Where bytes [first, first + bytes) are.
  std::vector<DeviceRegion> regions(std::uint64_t first, std::uint64_t bytes) const {
    std::vector<DeviceRegion> found;
    for (const Buffer<Device>& buffer : buffers_) {
      if (bytes == 0) break;
      const std::uint64_t n = first < buffer.bytes() ? std::min<std::uint64_t>(buffer.bytes() - first, bytes) : 0;
      if (n > 0) found.push_back({buffer.at() + first, static_cast<std::size_t>(n)});
      first = n > 0 ? 0 : first - buffer.bytes();
      bytes -= n;
    }
    return found;
  }

 private:
  static Error invalid(const std::string& what) { return Error(ErrorCode::kInvalidArgument, "all_reduce_bucketed: " + what); }

  const std::vector<Buffer<Device>> buffers_;
  const Buffer<Device>* first_ = nullptr;
  std::uint64_t bytes_ = 0;
};

std::vector<TensorView> views_on_host(std::span<const Buffer<Device>> buffers, DataType type) {
  std::vector<TensorView> tensors;
  for (const Buffer<Device>& buffer : buffers) tensors.push_back({host_address(buffer), buffer.bytes() / size_of(type)});
  return tensors;
}

bool host_reaches_all(std::span<const Buffer<Device>> buffers) {
  return std::all_of(buffers.begin(), buffers.end(), [](const Buffer<Device>& buffer) { return host_reaches(buffer); });
}

std::vector<Buffer<Device>> with_adapters(std::span<const Buffer<Device>> buffers, const Group& group) {
  std::vector<Buffer<Device>> all;
  for (const Buffer<Device>& buffer : buffers) all.push_back(tensor::with_adapter(buffer, group));
  return all;
}

// All buffers, one after the other, in pieces.
Operation start_list(std::vector<Buffer<Device>> buffers, DataType type, const Reduction& op, const CallOptions& options,
                     const Group& group, const DeviceGroupOptions& cut) {
  const auto all = std::make_shared<const Concatenation>(std::move(buffers));
  const std::size_t element = size_of(type);
  const std::uint64_t bytes = std::max<std::uint64_t>(1, tensor::piece_bytes(group, cut) / element) * element;
  const tensor::CallClock clock(options);
  tensor::Pieces pieces;
  pieces.name = "all_reduce_bucketed";
  pieces.count = std::max<std::uint64_t>(1, all->bytes() / bytes + (all->bytes() % bytes != 0));
  pieces.in_bytes = pieces.out_bytes = std::min(bytes, all->bytes());
  pieces.in_place = true;
  pieces.in = pieces.out = [all, bytes](std::uint64_t piece) { return all->regions(piece * bytes, bytes); };
  pieces.start = [all, bytes, element, group, type, op, clock](std::uint64_t piece, std::byte* in, std::byte* out) {
    return group.start_all_reduce(in, out, std::min(bytes, all->bytes() - piece * bytes) / element, type, op, clock.options_now());
  };
  pieces.deadline = clock.deadline();
  return runtime::start_program(group, std::make_shared<tensor::Pipeline>(group, all->representative(), all->representative(),
                                                                          std::move(pieces), cut.slots, all->what_is_wrong(type)));
}

}  // namespace

Operation DeviceGroup::start_all_reduce_bucketed(std::span<const Buffer<Device>> buffers, DataType type, const Reduction& op,
                                                 const CallOptions& options) const {
  std::vector<Buffer<Device>> all = with_adapters(buffers, group_);
  if (host_reaches_all(all)) return group_.start_all_reduce_bucketed(views_on_host(all, type), type, op, options);
  return start_list(std::move(all), type, op, options, group_, options_);
}

Result<void> DeviceGroup::all_reduce_bucketed(std::span<const Buffer<Device>> buffers, DataType type, const Reduction& op,
                                              const CallOptions& options) const {
  std::vector<Buffer<Device>> all = with_adapters(buffers, group_);
  if (host_reaches_all(all)) return group_.all_reduce_bucketed(views_on_host(all, type), type, op, options);
  return tensor::finish(start_list(std::move(all), type, op, options, group_, options_));
}

Operation DeviceGroup::start_send(const Buffer<Device>& given, Rank to, Tag tag) const {
  const Buffer<Device> buffer = tensor::with_adapter(given, group_);
  if (host_reaches(buffer)) return group_.start_send(host_address(buffer), buffer.bytes(), to, tag);
  const auto start = [group = group_, bytes = buffer.bytes(), to, tag](std::byte* memory) {
    return group.start_send(memory, bytes, to, tag);
  };
  return runtime::start_program(group_, std::make_shared<DeviceMessage>(DeviceMessage::Kind::kSend, group_, buffer, start));
}

Operation DeviceGroup::start_recv(const Buffer<Device>& given, Rank from, TagFilter tag) const {
  const Buffer<Device> buffer = tensor::with_adapter(given, group_);
  if (host_reaches(buffer)) return group_.start_recv(host_address(buffer), buffer.bytes(), from, tag);
  const auto start = [group = group_, bytes = buffer.bytes(), from, tag](std::byte* memory) {
    return group.start_recv(memory, bytes, from, tag);
  };
  return runtime::start_program(group_, std::make_shared<DeviceMessage>(DeviceMessage::Kind::kReceive, group_, buffer, start));
}

Result<void> DeviceGroup::send(const Buffer<Device>& given, Rank to, Tag tag) const {
  const Buffer<Device> buffer = tensor::with_adapter(given, group_);
  if (host_reaches(buffer)) return group_.send(host_address(buffer), buffer.bytes(), to, tag);
  Result<Status> sent = start_send(buffer, to, tag).wait(group_.config().p2p_timeout);
  if (!sent) return std::move(sent).error();
  return {};
}

Result<Status> DeviceGroup::recv(const Buffer<Device>& given, Rank from, TagFilter tag) const {
  const Buffer<Device> buffer = tensor::with_adapter(given, group_);
  if (host_reaches(buffer)) return group_.recv(host_address(buffer), buffer.bytes(), from, tag);
  return start_recv(buffer, from, tag).wait(group_.config().p2p_timeout);
}

}  // namespace nexar
