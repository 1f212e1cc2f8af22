// What this build of nexar is and what it found on this machine: the first thing to put into a bug report.
#pragma once

#include <string>
#include <vector>

#include "nexar/export.h"

namespace nexar {

struct Info {
  std::string version;                    // "0.1.0"
  std::string compiler;                   // "g++ 12.2.0"
  std::string cpu;                        // model name as the kernel gives it; the architecture where it gives none
  int cores = 0;                          // that this process may run on
  std::vector<std::string> cpu_features;  // of those that nexar can use
  std::string simd;                       // the instruction set that reductions run on
  std::vector<std::string> simd_targets;  // all that this build carries and this CPU can run, best first
  std::string crypto;                     // "AES-128-GCM by ipsec-mb (AVX-512)": what encrypts, and how
};

NEXAR_API Info info();

}  // namespace nexar
