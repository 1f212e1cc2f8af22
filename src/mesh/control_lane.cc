#include "mesh/control_lane.h"

#include <utility>

namespace nexar::mesh {

void ControlLane::end() {
  link_ = nullptr;
  backlog_.clear();
  backlog_bytes_ = 0;
}

void ControlLane::send_frame(std::vector<std::byte> frame) {
  if (backlog_.empty() && try_send(frame)) return;
  backlog_bytes_ += frame.size();
  backlog_.push_back(std::move(frame));
  if (backlog_bytes_ > kControlBacklogBytesMax) link_->abort("control frames are not read");
}

bool ControlLane::drain() {
  while (!backlog_.empty() && try_send(backlog_.front())) {
    backlog_bytes_ -= backlog_.front().size();
    backlog_.pop_front();
  }
  return backlog_.empty();
}

bool ControlLane::try_send(base::ByteView frame) {
  return link_ == nullptr || link_->send(*wire::decode_header(frame), frame.subspan(wire::kHeaderBytes));
}

}  // namespace nexar::mesh
