// The machine that this process runs on.
#pragma once

#include <string>
#include <vector>

namespace nexar::io {

struct Host {
  std::string cpu;                        // model name as the kernel gives it; the architecture where it gives none
  int cores = 0;                          // that this process may run on
  std::vector<std::string> cpu_features;  // of those that nexar can use
};

Host host();

}  // namespace nexar::io
