// What encrypts and what reduces, and how fast one core encrypts: the ceiling of encrypted bandwidth.
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "doctor/checks.h"
#include "doctor/encryption_rate.h"
#include "nexar/info.h"

namespace nexar::tool::doctor {

Findings check_cpu(const Surroundings&) {
  const Info found = info();
  const std::string crypto = fmt::format("{}, {:.1f} GB/s on one core", found.crypto, encryption_rate() / 1e9);
  Findings findings;
  // On a CPU without AES instructions encryption is far slower than any network that is worth having.
  const bool has_aes = std::find(found.cpu_features.begin(), found.cpu_features.end(), "aes") != found.cpu_features.end();
  if (has_aes)
    findings.push_back(ok("encryption", crypto));
  else
    findings.push_back(warning("encryption", crypto + "; the CPU shows no AES instructions",
                               "let the virtual machine see them: CPU model host-passthrough"));
  const std::string simd = fmt::format("reductions run on {}", found.simd);
  if (found.simd == "SCALAR" || found.simd == "EMU128")
    findings.push_back(warning("simd", simd, "let the virtual machine see AVX2 or better: CPU model host-passthrough"));
  else
    findings.push_back(ok("simd", simd));
  return findings;
}

}  // namespace nexar::tool::doctor
