// The stream of a communicator: its events, and waiting for it.
#pragma once

#include <memory>
#include <thread>
#include <utility>

#include "nexar/communicator.h"

namespace nexar::tensor {

// Without an adapter the stream is always empty.
class Stream {
 public:
  explicit Stream(const CommunicatorOptions& options)
      : adapter_(options.adapter != nullptr ? options.adapter : std::make_shared<CpuAdapter>()), stream_(options.stream) {}

  const std::shared_ptr<DeviceAdapter>& adapter() const { return adapter_; }

  Buffer<Device> buffer(const void* data, std::uint64_t bytes) const {
    return Buffer<Device>(adapter_, DevicePointer(reinterpret_cast<std::uintptr_t>(data)), static_cast<std::size_t>(bytes), stream_);
  }

  Result<void> wait_event(DeviceEvent event) { return adapter_->wait(stream_, event); }
  Result<DeviceEvent> record_event() { return adapter_->record(stream_); }

  Result<void> sync() {
    Result<DeviceEvent> now = adapter_->record(stream_);
    if (!now) return std::move(now).error();
    for (;;) {
      Result<bool> passed = adapter_->passed(*now);
      if (!passed) return std::move(passed).error();
      if (*passed) return {};
      if (!adapter_->poll()) std::this_thread::yield();
    }
  }

 private:
  std::shared_ptr<DeviceAdapter> adapter_;
  DeviceStream stream_;
};

}  // namespace nexar::tensor
