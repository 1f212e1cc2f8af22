#include "reduce/widen.h"

#include "base/assert.h"
#include "reduce/float_environment.h"

namespace nexar::reduce {

void widen(DataType type, const void* from, float* to, std::size_t count, const KernelTable& table) {
  const WidenKernel kernel = table.widen[static_cast<std::size_t>(type)];
  NEXAR_ASSERT(kernel != nullptr, "only small floats are widened");
  const FloatEnvironment standard;
  kernel(from, to, count);
}

void narrow(DataType type, const float* from, void* to, std::size_t count, const KernelTable& table) {
  const NarrowKernel kernel = table.narrow[static_cast<std::size_t>(type)];
  NEXAR_ASSERT(kernel != nullptr, "only small floats are narrowed to");
  const FloatEnvironment standard;
  kernel(from, to, count);
}

}  // namespace nexar::reduce
