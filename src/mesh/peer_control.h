// How a peer sends control frames; included by its sources only.
#pragma once

#include "mesh/peer.h"

namespace nexar::mesh {

// Control frames are never refused: those that find no room wait, and a peer that reads none of them is given up.
template <typename M>
void Peer::send_control(const M& message, GroupId group) {
  if (link_ == nullptr) return;
  std::vector<std::byte> frame(wire::frame_bytes_max<M>());
  frame.resize(wire::encode_frame(message, {.group = group, .epoch = around_.epoch}, frame));
  if (backlog_.empty() && send_frame(frame)) return;
  backlog_bytes_ += frame.size();
  backlog_.push_back(std::move(frame));
  if (backlog_bytes_ > kControlBacklogBytesMax) link_->abort("control frames are not read");
}

}  // namespace nexar::mesh
