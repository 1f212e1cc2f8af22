// How long a cache line takes from one core to another and back, in nanoseconds: the median of some tries between the first two cores that
// this process may use.
//
// A virtual machine's cores are moved about by its host. Two that share a cache are some 50 ns apart on the machines that we know, others
// 200 to 400, and then everything that ranks of one host tell each other takes longer: figures of the two do not compare.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include <sched.h>

namespace {

constexpr int kTries = 5;
constexpr unsigned kRoundTrips = 5000;

alignas(128) std::atomic<unsigned> line{0};

std::vector<int> cores_to_use() {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &mine)) cores.push_back(core);
  return cores;
}

void stay_on(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  sched_setaffinity(0, sizeof one, &one);
}

void wait_for(unsigned value) {
  while (line.load(std::memory_order_acquire) != value) continue;
}

}  // namespace

int main() {
  const std::vector<int> cores = cores_to_use();
  if (cores.size() < 2) {
    std::fprintf(stderr, "core_distance: this process may use one core only\n");
    return 1;
  }
  std::thread other([core = cores[1]] {
    stay_on(core);
    for (unsigned i = 0; i < kTries * kRoundTrips; ++i) {
      wait_for(2 * i + 1);
      line.store(2 * i + 2, std::memory_order_release);
    }
  });
  stay_on(cores[0]);
  std::array<double, kTries> nanoseconds{};
  unsigned value = 0;
  for (double& each : nanoseconds) {
    const auto begun = std::chrono::steady_clock::now();
    for (unsigned i = 0; i < kRoundTrips; ++i, value += 2) {
      line.store(value + 1, std::memory_order_release);
      wait_for(value + 2);
    }
    each = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begun).count() / kRoundTrips;
  }
  other.join();
  std::sort(nanoseconds.begin(), nanoseconds.end());
  std::printf("%.0f\n", nanoseconds[kTries / 2]);
  return 0;
}
