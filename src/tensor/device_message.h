// A message from or to memory of a device, by way of host memory: staged whole and then sent, or received and then placed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "nexar/buffer.h"
#include "nexar/buffer_pool.h"
#include "nexar/device.h"
#include "nexar/group.h"
#include "nexar/operation.h"
#include "nexar/result.h"
#include "runtime/program.h"

namespace nexar::tensor {

// A program of the runtime, made by the caller's thread and run by the engine. Its memory is its own from the beginning. Messages have no
// place in the order of collectives.
class DeviceMessage final : public runtime::Program {
 public:
  enum class Kind : std::uint8_t { kSend, kReceive };

  // `start` begins the send from or the receive into host memory.
  DeviceMessage(Kind kind, const Group& group, const Buffer<Device>& buffer, std::function<Operation(std::byte* memory)> start);

  std::string_view name() const override { return kind_ == Kind::kSend ? "send" : "recv"; }
  bool step(bool first) override;
  bool is_polled() const override { return at_ == At::kDevice; }
  bool has_begun() const override { return true; }
  const std::optional<Result<Status>>& result() const override { return result_; }
  void cancel(const Error& reason) override;

 private:
  enum class At : std::uint8_t { kBegin, kDevice, kCall, kEnd };

  void begin_device(std::size_t bytes);
  void begin_call();
  void on_device_done();
  void on_call_done(Result<Status> called);
  void end(Result<Status> result);

  const Kind kind_;
  const Buffer<Device> buffer_;
  const std::function<Operation(std::byte*)> start_;
  BufferPool::Lease memory_;
  At at_ = At::kBegin;
  DeviceCompletion moved_;  // of the step of the device
  Operation call_;
  Status got_{};                // by a receive
  std::optional<Error> error_;  // nothing new is begun
  std::optional<Result<Status>> result_;
};

}  // namespace nexar::tensor
