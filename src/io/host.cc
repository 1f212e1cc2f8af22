#include "io/host.h"

#include <array>
#include <fstream>

#include <sched.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fmt/format.h>

namespace nexar::io {
namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  utsname system{};
  return uname(&system) == 0 ? system.machine : "unknown";
}

int usable_cores() {
  const CoreSet own = own_cores();
  return own.is_known() ? own.size() : online_cores();
}

std::vector<std::string> cpu_features() {
  std::vector<std::string> found;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("sse4.1")) found.emplace_back("sse4.1");
  if (__builtin_cpu_supports("avx2")) found.emplace_back("avx2");
  if (__builtin_cpu_supports("avx512f")) found.emplace_back("avx512f");
  if (__builtin_cpu_supports("avx512bw")) found.emplace_back("avx512bw");
  if (__builtin_cpu_supports("aes")) found.emplace_back("aes");
  if (__builtin_cpu_supports("pclmul")) found.emplace_back("pclmul");
  if (__builtin_cpu_supports("vpclmulqdq")) found.emplace_back("vpclmulqdq");
#elif defined(__aarch64__)
  found.emplace_back("neon");
#endif
  return found;
}

}  // namespace

Host host() { return {cpu_model(), usable_cores(), cpu_features()}; }

CoreSet own_cores() {
  cpu_set_t set;
  static_assert(CPU_SETSIZE == CoreSet::kCoreEnd);
  CoreSet cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;  // more than a cpu_set_t holds
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.add(core);
  return cores;
}

int online_cores() { return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }

HostMarks host_marks() {
  HostMarks marks;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::getline(file, marks.boot_id);
  // Its inode is the namespace's number; of the thread, because threads of one process may be in several.
  struct stat facts {};
  if (stat("/proc/thread-self/ns/net", &facts) == 0) marks.network_namespace = facts.st_ino;
  return marks;
}

std::uint32_t this_user() { return geteuid(); }
int this_process() { return getpid(); }

std::string process_name() {
  std::array<char, 65> name{};  // HOST_NAME_MAX and the end
  if (gethostname(name.data(), name.size() - 1) != 0) name[0] = '?';
  return fmt::format("{} pid {}", name.data(), getpid());
}

}  // namespace nexar::io
