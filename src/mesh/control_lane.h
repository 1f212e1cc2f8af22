// The control lane to one peer: frames that are never refused. Those that find no room wait, and a peer that reads none of them is given
// up.
//
// Thread: engine. Owned by a Peer.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "base/bytes.h"
#include "mesh/message.h"
#include "nexar/ids.h"
#include "transport/link.h"
#include "wire/frame.h"

namespace nexar::mesh {

// Control frames that wait for room in their lane. A peer that lets this much pile up does not read.
inline constexpr std::size_t kControlBacklogBytesMax = 4u << 20;

class ControlLane {
 public:
  explicit ControlLane(Epoch epoch) : epoch_(epoch) {}

  // The link begins and ends; without one, what is sent goes nowhere.
  void begin(transport::Link& link) { link_ = &link; }
  void end();

  template <typename M>
  void send(const M& message, GroupId group) {
    if (link_ == nullptr) return;
    std::vector<std::byte> frame(wire::frame_bytes_max<M>());
    frame.resize(wire::encode_frame(message, {.group = group, .epoch = epoch_}, frame));
    send_frame(std::move(frame));
  }

  // There is room again. Whether nothing waits any more.
  bool drain();
  bool empty() const { return backlog_.empty(); }

 private:
  void send_frame(std::vector<std::byte> frame);
  bool try_send(base::ByteView frame);

  const Epoch epoch_;
  transport::Link* link_ = nullptr;
  std::deque<std::vector<std::byte>> backlog_;
  std::size_t backlog_bytes_ = 0;
};

}  // namespace nexar::mesh
