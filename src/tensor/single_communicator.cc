// A communicator of one rank: nothing travels.
#include <cstring>
#include <list>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "nexar/communicator.h"
#include "tensor/stream.h"

namespace nexar {
namespace {

constexpr std::uint64_t kUnreadMax =
    64ull << 20;  // bytes of messages to oneself that nobody has received: a mistake, or a very odd program

class SingleCommunicator final : public Communicator {
 public:
  explicit SingleCommunicator(CommunicatorOptions options) : options_(std::move(options)), stream_(options_) {}

  int world_size() const override { return 1; }
  Rank rank() const override { return 0; }
  std::optional<Group> group() const override { return std::nullopt; }

  Result<void> all_reduce(void* buffer, std::uint64_t count, DataType type, ReduceOp op) override {
    if (auto checked = check_reducible(type, op); !checked) return checked;
    return check("all_reduce", buffer, count, type);
  }

  Result<void> broadcast(void* buffer, std::uint64_t count, DataType type, Rank root) override {
    if (auto checked = check_rank("broadcast", root); !checked) return checked;
    return check("broadcast", buffer, count, type);
  }

  Result<void> all_gather(const void* send, void* recv, std::uint64_t count, DataType type) override {
    if (auto checked = check("all_gather", send, count, type); !checked) return checked;
    if (auto checked = check("all_gather", recv, count, type); !checked) return checked;
    return copy(send, recv, count * size_of(type));
  }

  Result<void> reduce_scatter(const void* send, void* recv, std::uint64_t count, DataType type, ReduceOp op) override {
    if (auto checked = check_reducible(type, op); !checked) return checked;
    if (auto checked = check("reduce_scatter", send, count, type); !checked) return checked;
    if (auto checked = check("reduce_scatter", recv, count, type); !checked) return checked;
    return copy(send, recv, count * size_of(type));
  }

  Result<void> send(const void* data, std::uint64_t count, DataType type, Rank to, Tag tag) override {
    if (auto checked = check_rank("send", to); !checked) return checked;
    if (auto checked = check("send", data, count, type); !checked) return checked;
    const std::uint64_t bytes = count * size_of(type);
    if (bytes > kUnreadMax - unread_bytes_)
      return Error(ErrorCode::kOverloaded,
                   fmt::format("send: {} bytes to oneself that nobody has received, and {} more", unread_bytes_, bytes));
    Message message{tag, std::vector<std::byte>(static_cast<std::size_t>(bytes))};
    if (auto staged = stage(data, message.bytes.data(), bytes); !staged) return staged;
    unread_bytes_ += bytes;
    unread_.push_back(std::move(message));
    return {};
  }

  Result<void> recv(void* data, std::uint64_t count, DataType type, Rank from, Tag tag) override {
    if (auto checked = check_rank("recv", from); !checked) return checked;
    if (auto checked = check("recv", data, count, type); !checked) return checked;
    for (auto message = unread_.begin(); message != unread_.end(); ++message) {
      if (message->tag != tag) continue;
      const std::vector<std::byte> bytes = std::move(message->bytes);
      unread_.erase(message);
      unread_bytes_ -= bytes.size();
      if (bytes.size() != count * size_of(type))
        return Error(ErrorCode::kMismatch, fmt::format("a receive of {} elements of {} from rank 0 got a message of {} bytes", count,
                                                       to_string(type), bytes.size()))
            .with_rank(0);
      return place(bytes.data(), data, bytes.size());
    }
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("recv: a world of one rank waits for a message with tag {} that it did not send", tag));
  }

  Result<void> barrier() override { return {}; }
  Result<void> sync() override { return stream_.sync(); }
  Result<void> wait_event(DeviceEvent event) override { return stream_.wait_event(event); }
  Result<DeviceEvent> record_event() override { return stream_.record_event(); }

  Result<std::unique_ptr<Communicator>> split(std::optional<int> color, int) override {
    std::unique_ptr<Communicator> made;
    if (color) made = std::make_unique<SingleCommunicator>(options_);
    return made;
  }

 private:
  struct Message {
    Tag tag;
    std::vector<std::byte> bytes;
  };

  static Result<void> check_rank(const char* call, Rank rank) {
    if (rank == 0) return {};
    return Error(ErrorCode::kInvalidArgument, fmt::format("{}: there is no rank {} in a group of 1", call, rank));
  }

  static Result<void> check(const char* call, const void* data, std::uint64_t count, DataType type) {
    if (!base::checked_multiply<std::uint64_t>(count, size_of(type)))
      return Error(ErrorCode::kInvalidArgument, fmt::format("{}: {} elements of {} do not fit in memory", call, count, to_string(type)));
    if (data == nullptr && count > 0)
      return Error(ErrorCode::kInvalidArgument, fmt::format("{}: the buffer is null and {} elements long", call, count));
    return {};
  }

  Result<void> wait_for(const DeviceCompletion& done) {
    while (!done.done())
      if (!stream_.adapter()->poll()) std::this_thread::yield();
    return done.result();
  }

  Result<void> stage(const void* from, void* to, std::uint64_t bytes) {
    const Buffer<Device> buffer = stream_.buffer(from, bytes);
    DeviceCompletion done;
    stream_.adapter()->stage(buffer.at(), to, buffer.bytes(), buffer.stream(), done);
    return wait_for(done);
  }

  Result<void> place(const void* from, void* to, std::uint64_t bytes) {
    const Buffer<Device> buffer = stream_.buffer(to, bytes);
    DeviceCompletion done;
    stream_.adapter()->place(from, buffer.at(), buffer.bytes(), buffer.stream(), done);
    return wait_for(done);
  }

  // From one place of the device to another by way of the host, a piece at a time.
  Result<void> copy(const void* from, void* to, std::uint64_t bytes) {
    if (from == to) return {};
    constexpr std::uint64_t kPiece = 1 << 20;
    std::vector<std::byte> piece(static_cast<std::size_t>(std::min(bytes, kPiece)));
    for (std::uint64_t done = 0; done < bytes; done += kPiece) {
      const std::uint64_t n = std::min(kPiece, bytes - done);
      if (auto staged = stage(static_cast<const std::byte*>(from) + done, piece.data(), n); !staged) return staged;
      if (auto placed = place(piece.data(), static_cast<std::byte*>(to) + done, n); !placed) return placed;
    }
    return {};
  }

  CommunicatorOptions options_;
  tensor::Stream stream_;
  std::list<Message> unread_;
  std::uint64_t unread_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> Communicator::single(const CommunicatorOptions& options) {
  return std::make_unique<SingleCommunicator>(options);
}

}  // namespace nexar
