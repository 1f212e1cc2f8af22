#include <cstring>
#include <utility>

#include "nexar/device.h"
#include "reduce/reducer.h"

namespace nexar {

void CpuAdapter::stage(DevicePointer from, void* to, std::size_t bytes, DeviceStream, DeviceCompletion& done) {
  if (bytes > 0) std::memmove(to, host_address(from), bytes);
  done.complete({});
}

void CpuAdapter::place(const void* from, DevicePointer to, std::size_t bytes, DeviceStream, DeviceCompletion& done) {
  if (bytes > 0) std::memmove(host_address(to), from, bytes);
  done.complete({});
}

void CpuAdapter::reduce(DevicePointer left, DevicePointer right, DevicePointer out, std::uint64_t count, DataType type, ReduceOp op,
                        DeviceStream, DeviceCompletion& done) {
  Result<reduce::Reducer> reducer = reduce::Reducer::make(type, op);
  if (!reducer) return done.complete(std::move(reducer).error());
  done.complete(reducer->combine(host_address(left), host_address(right), host_address(out), static_cast<std::size_t>(count)));
}

}  // namespace nexar
