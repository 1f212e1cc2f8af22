// An engine on a real loop, as the tests of the engine use it.
#pragma once

#include <chrono>
#include <memory>

#include "io/clock.h"
#include "io/epoll_loop.h"
#include "runtime/engine.h"

namespace nexar::runtime {

// Nothing happens because time passes: whatever is not told hangs, and the test with it. Every summons is sent, too.
inline EngineOptions without_timeouts() {
  return {.idle = std::chrono::hours(1), .doze = std::chrono::hours(1), .quiet = base::Duration::zero()};
}

struct RunningEngine {
  explicit RunningEngine(EngineOptions options = {}) : engine(Engine::start(*loop, io::real_clock(), options).value()) {}

  Engine* operator->() const { return engine.get(); }

  // Posts work that completes `completion`.
  void post_completion(Completion& completion) const {
    engine->post([&completion] { completion.complete(); });
  }

  std::unique_ptr<io::EpollLoop> loop = io::EpollLoop::open().value();
  std::unique_ptr<Engine> engine;
};

inline base::Time in(base::Duration time) { return io::real_clock().now() + time; }

}  // namespace nexar::runtime
