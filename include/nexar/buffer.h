// Buffers that say whose memory they are: Buffer<Host> and Buffer<Device>. One is not taken for the other, and a plain pointer is never
// taken for device memory: such a program does not compile.
//
// A Buffer is a view. The memory belongs to the application and outlives every call that is given it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "nexar/data_type.h"
#include "nexar/device.h"

namespace nexar {

struct Host;
struct Device;

template <typename Space>
class Buffer;

// Memory of this process.
template <>
class Buffer<Host> {
 public:
  Buffer() = default;
  Buffer(void* data, std::size_t bytes) : data_(data), bytes_(bytes) {}
  template <Element T>
  requires(!std::is_const_v<T>) Buffer(std::span<T> elements)  // NOLINT: a span is a buffer
      : data_(elements.data()), bytes_(elements.size_bytes()) {}

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Memory that an adapter reaches, and the stream on which it is produced and used. Without an adapter it is of the node's whose call it is
// given to.
template <>
class Buffer<Device> {
 public:
  Buffer() = default;  // of nothing: for ranks that give or get none
  explicit Buffer(DevicePointer at, std::size_t bytes, DeviceStream stream = DeviceStream::kDefault)
      : at_(at), bytes_(bytes), stream_(stream) {}
  Buffer(std::shared_ptr<DeviceAdapter> adapter, DevicePointer at, std::size_t bytes, DeviceStream stream = DeviceStream::kDefault)
      : adapter_(std::move(adapter)), at_(at), bytes_(bytes), stream_(stream) {}

  const std::shared_ptr<DeviceAdapter>& adapter() const { return adapter_; }
  DevicePointer at() const { return at_; }
  std::size_t bytes() const { return bytes_; }
  DeviceStream stream() const { return stream_; }

 private:
  std::shared_ptr<DeviceAdapter> adapter_;
  DevicePointer at_;
  std::size_t bytes_ = 0;
  DeviceStream stream_ = DeviceStream::kDefault;
};

}  // namespace nexar
