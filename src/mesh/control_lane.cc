#include "mesh/control_lane.h"

#include <utility>

namespace nexar::mesh {

ControlLane::ControlLane(Epoch epoch, io::Loop* loop) : epoch_(epoch), loop_(loop) {
  if (loop_ != nullptr) held_timer_.emplace(*loop_, [this] { on_time(); });
}

void ControlLane::end() {
  link_ = nullptr;
  held_.clear();
  backlog_.clear();
  backlog_bytes_ = 0;
}

void ControlLane::send_frame(std::vector<std::byte> frame) {
  if (backlog_.empty() && try_send(frame)) return;
  backlog_bytes_ += frame.size();
  backlog_.push_back(std::move(frame));
  if (backlog_bytes_ > kControlBacklogBytesMax) link_->abort("control frames are not read");
}

void ControlLane::hold(std::vector<std::byte> frame) {
  held_.push_back(std::move(frame));
  if (!held_timer_ || held_.size() == kControlHeldMax) return send_held();
  if (held_.size() == 1) held_until_ = loop_->now() + kControlHeldFor;
  if (!held_timer_->is_set()) held_timer_->set(held_until_);
}

// The timer is left alone when frames leave by themselves, as they mostly do.
void ControlLane::on_time() {
  if (held_.empty()) return;
  if (loop_->now() >= held_until_) return send_held();
  held_timer_->set(held_until_);
}

void ControlLane::send_held() {
  for (std::vector<std::byte>& frame : std::exchange(held_, {})) send_frame(std::move(frame));
}

bool ControlLane::flush() {
  send_held();
  return backlog_.empty();
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
