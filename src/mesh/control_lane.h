// The control lane to one peer: frames that are never refused. Those that find no room wait, and a peer that reads none of them is given
// up.
//
// Thread: engine. Owned by a Peer.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "io/loop.h"
#include "io/timer.h"
#include "mesh/message.h"
#include "nexar/ids.h"
#include "transport/link.h"
#include "wire/frame.h"

namespace nexar::mesh {

// Control frames that wait for room in their lane. A peer that lets this much pile up does not read.
inline constexpr std::size_t kControlBacklogBytesMax = 4u << 20;

// How long a frame waits for another that takes it along, and how many do: longer than half an all_reduce of a MiB over loopback takes.
inline constexpr base::Duration kControlHeldFor = std::chrono::microseconds(500);
inline constexpr std::size_t kControlHeldMax = 16;

class ControlLane {
 public:
  // Without a loop no frame waits for another.
  explicit ControlLane(Epoch epoch, io::Loop* loop = nullptr);

  // The link begins and ends; without one, what is sent goes nowhere.
  void begin(transport::Link& link) { link_ = &link; }
  void end();

  template <typename M>
  void send(const M& message, GroupId group) {
    if (link_ == nullptr) return;
    send_held();
    send_frame(encode(message, group));
  }

  // The same for what nobody is in a hurry for: it leaves with the next frame to this peer, in one packet, or after kControlHeldFor.
  template <typename M>
  void send_with_next(const M& message, GroupId group) {
    if (link_ == nullptr) return;
    hold(encode(message, group));
  }

  // There is room again. Whether nothing waits any more.
  bool drain();

  // Sends what waits for another frame. Whether nothing waits any more.
  bool flush();

 private:
  template <typename M>
  std::vector<std::byte> encode(const M& message, GroupId group) const {
    std::vector<std::byte> frame(wire::frame_bytes_max<M>());
    frame.resize(wire::encode_frame(message, {.group = group, .epoch = epoch_}, frame));
    return frame;
  }
  void send_frame(std::vector<std::byte> frame);
  void hold(std::vector<std::byte> frame);
  void on_time();
  void send_held();
  bool try_send(base::ByteView frame);

  const Epoch epoch_;
  transport::Link* link_ = nullptr;
  std::deque<std::vector<std::byte>> backlog_;
  std::size_t backlog_bytes_ = 0;
  io::Loop* const loop_;
  std::vector<std::vector<std::byte>> held_;  // at most kControlHeldMax
  base::Time held_until_{};
  std::optional<io::Timer> held_timer_;
};

}  // namespace nexar::mesh
