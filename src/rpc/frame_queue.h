// The frames of the rpc lane to one peer, those that find no room included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "mesh/mesh.h"
#include "rpc/limits.h"
#include "wire/frame.h"

namespace nexar::rpc {

// Thread: engine. Owned by the service.
class FrameQueue {
 public:
  FrameQueue(mesh::Mesh& mesh, Rank peer, const PeerLimits& limits)
      : mesh_(mesh), peer_(peer), backlog_bytes_max_(kRefusalsBytesMax + std::size_t{limits.calls} * wire::kEagerBytesMax) {}

  // A request, whose payload is the caller's memory until take_back() or until it has gone.
  void request(std::uint64_t call, const wire::Header& header, base::ByteView arguments) {
    if (waiting_.empty() && mesh_.send_rpc(peer_, header, arguments)) return;
    waiting_.push_back({header, {}, arguments, call});
  }

  // A request that waits goes nowhere; false when none of that call does.
  bool take_back(std::uint64_t call) {
    return !waiting_.empty() && std::erase_if(waiting_, [&](const Frame& frame) { return frame.call == call; }) > 0;
  }

  // An answer with its bytes.
  void answer(const wire::Header& header, std::vector<std::byte> result) {
    if (waiting_.empty() && mesh_.send_rpc(peer_, header, result)) return;
    waiting_.push_back({header, std::move(result), {}, 0});
    count(waiting_.back());
  }

  template <typename M>
  void say(const M& message, std::uint64_t scope) {
    std::vector<std::byte> frame(wire::frame_bytes_max<M>());
    frame.resize(wire::encode_frame(message, {.group = scope, .epoch = mesh_.epoch()}, frame));
    const wire::Header header = *wire::decode_header(frame);
    answer(header, {frame.begin() + wire::kHeaderBytes, frame.end()});
  }

  void drain() {
    while (!waiting_.empty()) {
      const Frame& first = waiting_.front();
      if (!mesh_.send_rpc(peer_, first.header, first.call != 0 ? first.arguments : base::ByteView(first.owned))) return;
      backlog_bytes_ -= first.call != 0 ? 0 : size(first);
      waiting_.pop_front();
    }
  }

  void clear() {
    waiting_.clear();
    backlog_bytes_ = 0;
  }
  bool empty() const { return waiting_.empty(); }

 private:
  struct Frame {
    wire::Header header;
    std::vector<std::byte> owned;
    base::ByteView arguments;
    std::uint64_t call;  // of a request, which the call table bounds; 0 of everything else
  };
  static std::size_t size(const Frame& frame) { return wire::kHeaderBytes + frame.owned.size(); }
  void count(const Frame& frame) {
    backlog_bytes_ += size(frame);
    if (backlog_bytes_ > backlog_bytes_max_) mesh_.give_up(peer_, "answers to calls are not read");
  }

  mesh::Mesh& mesh_;
  Rank peer_;
  std::deque<Frame> waiting_;
  const std::size_t backlog_bytes_max_;
  std::size_t backlog_bytes_ = 0;
};

}  // namespace nexar::rpc
