#include "tensor/device_message.h"

#include <utility>

#include <fmt/format.h>

namespace nexar::tensor {

DeviceMessage::DeviceMessage(Kind kind, const Group& group, const Buffer<Device>& buffer, std::function<Operation(std::byte*)> start)
    : kind_(kind), buffer_(buffer), start_(std::move(start)) {
  if (buffer.at().is_null() && buffer.bytes() > 0) {
    error_ = Error(ErrorCode::kInvalidArgument, fmt::format("{}: the buffer is null and {} bytes long", name(), buffer.bytes()));
    return;
  }
  Result<BufferPool::Lease> memory = group.pool()->take(buffer.bytes(), buffer.adapter());
  if (memory)
    memory_ = *std::move(memory);
  else
    error_ = std::move(memory).error();
}

bool DeviceMessage::step(bool) {
  switch (at_) {
    case At::kBegin:
      if (error_)
        end(*error_);
      else if (kind_ == Kind::kSend)
        begin_device(buffer_.bytes());
      else
        begin_call();
      return true;
    case At::kDevice: {
      const bool polled = buffer_.adapter()->poll();
      if (!moved_.done()) return polled;
      on_device_done();
      return true;
    }
    case At::kCall:
      if (!call_.done()) return false;
      on_call_done(call_.wait());
      return true;
    case At::kEnd: break;
  }
  return false;
}

void DeviceMessage::begin_device(std::size_t bytes) {
  at_ = At::kDevice;
  if (bytes == 0)
    moved_.complete({});
  else if (kind_ == Kind::kSend)
    buffer_.adapter()->stage(buffer_.at(), memory_.data(), bytes, buffer_.stream(), moved_);
  else
    buffer_.adapter()->place(memory_.data(), buffer_.at(), bytes, buffer_.stream(), moved_);
}

void DeviceMessage::begin_call() {
  at_ = At::kCall;
  const runtime::CallOfProgram call;
  call_ = start_(memory_.data());
}

void DeviceMessage::on_device_done() {
  if (error_) return end(*error_);
  if (Result<void> moved = moved_.result(); !moved) return end(std::move(moved).error());
  if (kind_ == Kind::kSend)
    begin_call();
  else
    end(got_);
}

void DeviceMessage::on_call_done(Result<Status> called) {
  if (!called || kind_ == Kind::kSend) return end(std::move(called));
  got_ = *called;
  begin_device(static_cast<std::size_t>(got_.bytes));
}

void DeviceMessage::end(Result<Status> result) {
  at_ = At::kEnd;
  memory_ = {};
  result_.emplace(std::move(result));
}

// A step of the device that is under way ends first.
void DeviceMessage::cancel(const Error& reason) {
  if (result_ || error_) return;
  error_ = reason;
  if (at_ == At::kCall) runtime::stop_call(call_, reason);
}

}  // namespace nexar::tensor
