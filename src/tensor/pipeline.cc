#include "tensor/pipeline.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"

namespace nexar::tensor {

Pipeline::Pipeline(const Group& group, const Buffer<Device>& send, const Buffer<Device>& recv, Pieces pieces, std::size_t slots,
                   std::optional<Error> wrong)
    : group_(group), send_(send), recv_(recv), pieces_(std::move(pieces)), error_(std::move(wrong)) {
  if (!error_) note(take_slots(slots));
}

Result<void> Pipeline::take_slots(std::size_t wanted) {
  const std::uint64_t in_bytes = (pieces_.in_bytes + 63) / 64 * 64;
  const std::uint64_t bytes = pieces_.in_place ? std::max(in_bytes, pieces_.out_bytes) : in_bytes + pieces_.out_bytes;
  wanted = std::max<std::size_t>(wanted, 1);
  while (slots_.size() < (pieces_.agree ? wanted : std::min<std::uint64_t>(wanted, pieces_.count))) {
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

bool Pipeline::step(bool first) {
  bool moved = check_deadline();
  moved = agree(first) || moved;
  moved = poll_devices() || moved;
  for (bool again = !pieces_.agree; again; moved = again || moved) {
    const bool staged = stage_next();
    const bool started = start_next(first);
    const bool placed = place_next();
    const bool released = release_next();
    again = staged || started || placed || released;
  }
  if (error_ && first && !pieces_.agree) moved = decline_rest() || moved;
  const bool over = error_ || (!pieces_.agree && released_ == pieces_.count);
  if (!result_ && over && !is_under_way()) {
    end();
    moved = true;
  }
  return moved;
}

bool Pipeline::check_deadline() {
  if (!watches_clock() || std::chrono::steady_clock::now() < *pieces_.deadline) return false;
  note(Error(ErrorCode::kTimeout, fmt::format("{} did not end before its deadline on rank {}", pieces_.name, group_.rank()))
           .with_rank(group_.rank()));
  return true;
}

// Finds out how many pieces there are. An error of this call is the whole one's: then nobody has any. It is not stopped by what happens
// here meanwhile, because others may have come to know a number of pieces which this rank then has to decline.
bool Pipeline::agree(bool first) {
  if (!pieces_.agree || (!agreement_ && !first)) return false;
  const bool begins = !agreement_;
  if (begins) {
    const runtime::CallOfProgram call;
    agreement_ = error_ ? group_.start_decline(*error_, pieces_.name) : pieces_.agree();
  }
  if (!agreement_->done()) return begins;
  const Result<Status> result = agreement_->wait();
  pieces_.agree = nullptr;
  pieces_.count = result ? pieces_.agreed() : 0;
  if (!result) note(result.error());
  return true;
}

bool Pipeline::poll_devices() {
  if (!waits_for_device()) return false;
  bool polled = false;
  if (send_.adapter() != nullptr) polled = send_.adapter()->poll();
  if (recv_.adapter() != nullptr && recv_.adapter() != send_.adapter()) polled = recv_.adapter()->poll() || polled;
  return polled;
}

bool Pipeline::is_polled() const { return waits_for_device() || watches_clock(); }

bool Pipeline::waits_for_device() const {
  for (std::uint64_t piece = started_; piece < staging_; ++piece)
    if (!slot(piece).staged.done()) return true;
  for (std::uint64_t piece = released_; piece < placing_; ++piece)
    if (!slot(piece).placed.done()) return true;
  return false;
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

bool Pipeline::start_next(bool first) {
  if (error_ || started_ == staging_) return false;
  Slot& next = slot(started_);
  if (!next.staged.done()) return false;
  note(next.staged.result());
  if (error_ || !first) return error_.has_value();
  const runtime::CallOfProgram call;
  next.operation = pieces_.start(started_, next.in, next.out);
  ++started_;
  ++begun_;
  return true;
}

bool Pipeline::place_next() {
  if (error_ || placing_ == started_) return false;
  Slot& next = slot(placing_);
  if (!next.operation.done()) return false;
  const Result<Status> ran = next.operation.wait();
  if (!ran) {
    note(ran.error());
    return true;
  }
  if (next.out_regions.empty())
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

// All ranks are at the same place in the order of calls afterwards.
bool Pipeline::decline_rest() {
  const bool any = begun_ < pieces_.count;
  for (; begun_ < pieces_.count; ++begun_) {
    const runtime::CallOfProgram call;
    const Operation declined = group_.start_decline(*error_, pieces_.name);
    NEXAR_ASSERT(declined.done(), "a call that is declined ends at once");
  }
  return any;
}

// Whether anybody may touch the memory of a slot or of the application. What is between ranks has been stopped after an error.
bool Pipeline::is_under_way() const {
  if (waits_for_device()) return true;
  for (std::uint64_t piece = placing_; piece < started_; ++piece)
    if (!slot(piece).operation.done()) return true;
  return false;
}

void Pipeline::end() {
  slots_.clear();
  released_ = placing_ = started_ = staging_;
  result_.emplace(error_ ? Result<Status>(*error_) : Result<Status>(Status{}));
}

void Pipeline::cancel(const Error& reason) {
  if (!result_) note(reason);
}

// What is between ranks ends with it: the others may have given up already, or have fewer pieces.
void Pipeline::note(Result<void> result) {
  if (result || error_) return;
  error_ = std::move(result).error();
  for (std::uint64_t piece = placing_; piece < started_; ++piece) runtime::stop_call(slot(piece).operation, *error_);
}

}  // namespace nexar::tensor
