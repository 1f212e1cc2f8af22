// A communicator over a group of this runtime.
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "nexar/communicator.h"
#include "tensor/stream.h"

namespace nexar {
namespace {

// `n` times `count` elements, or the largest number, which no buffer has.
std::uint64_t bytes_of(std::uint64_t n, std::uint64_t count, DataType type) {
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(n, count, &bytes) || __builtin_mul_overflow(bytes, size_of(type), &bytes))
    return std::numeric_limits<std::uint64_t>::max();
  return bytes;
}

CommunicatorOptions with_adapter(CommunicatorOptions options, const Group& group) {
  if (options.adapter == nullptr) options.adapter = group.adapter();
  return options;
}

class NetCommunicator final : public Communicator {
 public:
  NetCommunicator(Group group, CommunicatorOptions options, std::shared_ptr<Node> node)
      : node_(std::move(node)),
        options_(with_adapter(std::move(options), group)),
        stream_(options_),
        group_(std::move(group), options_.pieces) {}

  int world_size() const override { return group_.group().size(); }
  Rank rank() const override { return group_.group().rank(); }
  std::optional<Group> group() const override { return group_.group(); }

  Result<void> all_reduce(void* buffer, std::uint64_t count, DataType type, ReduceOp op) override {
    return group_.all_reduce(stream_.buffer(buffer, bytes_of(1, count, type)), count, type, op);
  }

  Result<void> broadcast(void* buffer, std::uint64_t count, DataType type, Rank root) override {
    return group_.broadcast(stream_.buffer(buffer, bytes_of(1, count, type)), count, type, root);
  }

  Result<void> all_gather(const void* send, void* recv, std::uint64_t count, DataType type) override {
    return group_.all_gather(stream_.buffer(send, bytes_of(1, count, type)), stream_.buffer(recv, bytes_of(width(), count, type)), count,
                             type);
  }

  Result<void> reduce_scatter(const void* send, void* recv, std::uint64_t count, DataType type, ReduceOp op) override {
    return group_.reduce_scatter(stream_.buffer(send, bytes_of(width(), count, type)), stream_.buffer(recv, bytes_of(1, count, type)),
                                 count, type, op);
  }

  Result<void> send(const void* data, std::uint64_t count, DataType type, Rank to, Tag tag) override {
    return group_.send(stream_.buffer(data, bytes_of(1, count, type)), to, tag);
  }

  Result<void> recv(void* data, std::uint64_t count, DataType type, Rank from, Tag tag) override {
    const Buffer<Device> buffer = stream_.buffer(data, bytes_of(1, count, type));
    Result<Status> got = group_.recv(buffer, from, tag);
    if (!got) return std::move(got).error();
    if (got->bytes == buffer.bytes()) return {};
    return Error(ErrorCode::kMismatch, fmt::format("a receive of {} elements of {} from rank {} got a message of {} bytes", count,
                                                   to_string(type), got->source, got->bytes))
        .with_rank(got->source);
  }

  Result<void> barrier() override { return group_.group().barrier(); }
  Result<void> sync() override { return stream_.sync(); }
  Result<void> wait_event(DeviceEvent event) override { return stream_.wait_event(event); }
  Result<DeviceEvent> record_event() override { return stream_.record_event(); }

  Result<std::unique_ptr<Communicator>> split(std::optional<int> color, int key) override {
    Result<std::optional<Group>> part = group_.group().split(color, key);
    if (!part) return std::move(part).error();
    std::unique_ptr<Communicator> made;
    if (*part) made = std::make_unique<NetCommunicator>(**part, options_, node_);
    return made;
  }

 private:
  std::uint64_t width() const { return static_cast<std::uint64_t>(world_size()); }

  std::shared_ptr<Node> node_;  // of a communicator that joined, shared by its parts; closes last
  CommunicatorOptions options_;
  tensor::Stream stream_;
  DeviceGroup group_;
};

}  // namespace

Communicator::~Communicator() = default;

std::unique_ptr<Communicator> Communicator::net(Group group, const CommunicatorOptions& options) {
  return std::make_unique<NetCommunicator>(std::move(group), options, nullptr);
}

Result<std::unique_ptr<Communicator>> Communicator::join(const JoinOptions& join, const CommunicatorOptions& options) {
  Result<Node> node = Node::join(join);
  if (!node) return std::move(node).error();
  auto kept = std::make_shared<Node>(*std::move(node));
  return std::unique_ptr<Communicator>(std::make_unique<NetCommunicator>(kept->world(), options, kept));
}

}  // namespace nexar
