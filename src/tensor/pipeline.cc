#include "tensor/pipeline.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace nexar::tensor {

Pipeline::Pipeline(const Group& group, const Buffer<Device>& send, const Buffer<Device>& recv, Pieces pieces)
    : group_(group), send_(send), recv_(recv), pieces_(std::move(pieces)) {}

Result<void> Pipeline::take_slots(std::size_t wanted) {
  const std::uint64_t in_bytes = (pieces_.in_bytes + 63) / 64 * 64;
  const std::uint64_t bytes = pieces_.in_place ? std::max(in_bytes, pieces_.out_bytes) : in_bytes + pieces_.out_bytes;
  while (slots_.size() < std::min<std::uint64_t>(std::max<std::size_t>(wanted, 1), pieces_.count)) {
    const std::shared_ptr<DeviceAdapter>& adapter = send_.adapter() != nullptr ? send_.adapter() : recv_.adapter();
    Result<BufferPool::Lease> memory = group_.pool()->take(static_cast<std::size_t>(bytes), adapter);
    if (!memory) {
      if (slots_.empty()) return std::move(memory).error();
      break;  // fewer do as well
    }
    auto slot = std::make_unique<Slot>();
    slot->memory = *std::move(memory);
    slot->in = slot->memory.data();
    slot->out = pieces_.in_place ? slot->in : slot->in + in_bytes;
    slots_.push_back(std::move(slot));
  }
  return {};
}

Result<void> Pipeline::run(std::size_t slots) {
  note(take_slots(slots));
  while (!error_ && released_ < pieces_.count)
    if (!step()) wait();
  while (released_ < staging_)  // only after an error: what is under way ends
    if (!step()) wait();
  for (; started_ < pieces_.count; ++started_) {
    Operation declined = group_.start_decline(*error_, pieces_.name);
    note(declined.wait() ? Result<void>() : Result<void>(*error_));
  }
  if (error_) return *error_;
  return {};
}

bool Pipeline::step() {
  const bool staged = stage_next();
  const bool started = start_next();
  const bool placed = place_next();
  const bool released = release_next();
  return staged || started || placed || released;
}

bool Pipeline::stage_next() {
  if (error_ || staging_ == pieces_.count || staging_ - released_ == slots_.size()) return false;
  Slot& next = slot(staging_);
  next.in_regions = pieces_.in(staging_);
  next.out_regions = pieces_.out(staging_);
  next.staged.reset();
  next.placed.reset();
  if (next.in_regions.empty())
    next.staged.complete({});
  else
    send_.adapter()->stage(next.in_regions, next.in, send_.stream(), next.staged);
  ++staging_;
  return true;
}

bool Pipeline::start_next() {
  if (started_ == staging_) return false;
  Slot& next = slot(started_);
  if (!next.staged.done()) return false;
  note(next.staged.result());
  next.operation = error_ ? group_.start_decline(*error_, pieces_.name) : pieces_.start(started_, next.in, next.out);
  ++started_;
  return true;
}

bool Pipeline::place_next() {
  if (placing_ == started_) return false;
  Slot& next = slot(placing_);
  if (!next.operation.done()) return false;
  const Result<Status> ran = next.operation.wait();
  if (!ran) note(ran.error());
  if (error_ || next.out_regions.empty())
    next.placed.complete({});
  else
    recv_.adapter()->place(next.out, next.out_regions, recv_.stream(), next.placed);
  ++placing_;
  return true;
}

bool Pipeline::release_next() {
  if (released_ == placing_) return false;
  Slot& next = slot(released_);
  if (!next.placed.done()) return false;
  note(next.placed.result());
  ++released_;
  return true;
}

// Nothing moves by itself here: a device is polled. Where only ranks are waited for, this thread sleeps until the oldest piece is through.
void Pipeline::wait() {
  const bool staging = started_ < staging_;
  const bool placing = released_ < placing_;
  if (!staging && !placing) {
    static_cast<void>(slot(placing_).operation.wait().has_value());
    return;
  }
  bool polled = false;
  if (send_.adapter() != nullptr) polled = send_.adapter()->poll();
  if (recv_.adapter() != nullptr && recv_.adapter() != send_.adapter()) polled |= recv_.adapter()->poll();
  if (!polled) std::this_thread::yield();
}

// What is between ranks ends with it: the others may have given up already, or have fewer pieces.
void Pipeline::note(Result<void> result) {
  if (result || error_) return;
  error_ = std::move(result).error();
  for (std::uint64_t piece = placing_; piece < started_; ++piece) slot(piece).operation.cancel(*error_);
}

}  // namespace nexar::tensor
