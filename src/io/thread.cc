#include "io/thread.h"

#include <atomic>
#include <system_error>
#include <utility>

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <fmt/format.h>

#include "base/assert.h"

namespace nexar::io {
namespace {

std::atomic<std::uint32_t> fork_count = 0;

// Threads inherit the mask of the one that starts them, so no signal can come between start and a call in the new thread.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    NEXAR_ASSERT(pthread_sigmask(SIG_SETMASK, &all, &before_) == 0, "a full signal mask is valid");
  }
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

Result<std::thread> start_thread(const char* name, std::function<void()> body) {
  const AllSignalsBlocked blocked;
  try {
    std::thread thread(std::move(body));
    pthread_setname_np(thread.native_handle(), name);
    return thread;
  } catch (const std::system_error& error) {
    // Of all that can be missing here, only a limit on threads or memory is.
    return Error(ErrorCode::kOverloaded, fmt::format("cannot start the thread {}: {}", name, error.code().message()));
  }
}

std::uint32_t forks() {
  static const bool registered = [] {
    const int refused = pthread_atfork(nullptr, nullptr, [] { fork_count.fetch_add(1, std::memory_order_relaxed); });
    NEXAR_ASSERT(refused == 0, "there is memory for one fork handler");
    return true;
  }();
  static_cast<void>(registered);
  return fork_count.load(std::memory_order_relaxed);
}

void pin_thread(int core) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || core >= CPU_COUNT(&allowed)) return;
  for (int number = 0; number < CPU_SETSIZE; ++number) {
    if (!CPU_ISSET(number, &allowed) || core-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(number, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);  // a wish: a thread that stays where it was still runs
    return;
  }
}

}  // namespace nexar::io
