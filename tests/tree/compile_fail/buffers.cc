// Compiles only with KEEP defined: host memory is not taken for a device's, nor the other way round.
#include <memory>
#include <span>

#include "nexar/buffer.h"

void use(nexar::Buffer<nexar::Device> buffer);
void use_host(nexar::Buffer<nexar::Host> buffer);

void caller(std::shared_ptr<nexar::DeviceAdapter> adapter, float* host, nexar::DevicePointer device) {
  const nexar::Buffer<nexar::Host> on_host(host, 4);
  const nexar::Buffer<nexar::Device> on_device(adapter, device, 4);
#if defined(KEEP)
  use(on_device);
  use_host(on_host);
  use_host(std::span<float>(host, 1));
#elif defined(HOST_POINTER)
  use(nexar::Buffer<nexar::Device>(adapter, host, 4));
#elif defined(HOST_POINTER_AS_DEVICE_POINTER)
  const nexar::DevicePointer pointer(host);
#elif defined(HOST_BUFFER)
  use(on_host);
#elif defined(HOST_SPAN)
  use(std::span<float>(host, 1));
#elif defined(DEVICE_BUFFER)
  use_host(on_device);
#elif defined(DEVICE_POINTER)
  use_host(nexar::Buffer<nexar::Host>(device, 4));
#endif
}
