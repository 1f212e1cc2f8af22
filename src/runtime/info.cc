#include "nexar/info.h"

#include "crypto/aead.h"
#include "io/host.h"
#include "nexar/version.h"
#include "reduce/kernels.h"

namespace nexar {
namespace {

#if defined(__clang__)
constexpr const char* kCompiler = "clang " __clang_version__;
#else
constexpr const char* kCompiler = "g++ " __VERSION__;
#endif

}  // namespace

Info info() {
  io::Host host = io::host();
  Info result{NEXAR_VERSION, kCompiler, std::move(host.cpu), host.cores, std::move(host.cpu_features), {}, {}, crypto::aead_description()};
  for (const std::int64_t target : reduce::targets()) result.simd_targets.emplace_back(reduce::target_name(target));
  result.simd = result.simd_targets.front();
  return result;
}

}  // namespace nexar
