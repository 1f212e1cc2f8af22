// The machine that this process runs on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "types/core_set.h"

namespace nexar::io {

struct Host {
  std::string cpu;                        // model name as the kernel gives it; the architecture where it gives none
  int cores = 0;                          // that this process may run on
  std::vector<std::string> cpu_features;  // of those that nexar can use
};

Host host();

// The cores that the calling thread may run on; unknown where there are more than a CoreSet holds.
CoreSet own_cores();

// How many cores this host runs, whoever may use them.
int online_cores();

// What tells this kernel, and this network namespace of it, from all others.
struct HostMarks {
  std::string boot_id;                  // empty where the kernel does not tell
  std::uint64_t network_namespace = 0;  // that the calling thread is in

  friend bool operator==(const HostMarks&, const HostMarks&) = default;
};

HostMarks host_marks();

// Of this process: the effective one, as peers on a unix socket see it.
std::uint32_t this_user();
int this_process();

// Which process this is, for people: `HOSTNAME pid 1234`.
std::string process_name();

}  // namespace nexar::io
