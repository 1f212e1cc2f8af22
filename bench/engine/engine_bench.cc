// What the engine costs an operation.
//
//   done          a wait for what is done already
//   post_wait     post work and wait for it, on one thread: no wake-up, no system call
//   needed        the same while the background thread is needed, as with handlers registered
//   hand_over     post from one thread what another waits for, and back: two threads, one engine
//   ping_pong     two engines, a thread each, bells of one ring in the other's loop
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

#include <sys/eventfd.h>
#include <unistd.h>

#include <benchmark/benchmark.h>

#include "io/epoll_loop.h"
#include "runtime/engine.h"

namespace nexar::bench {
namespace {

using runtime::Completion;
using runtime::Engine;
using runtime::EngineOptions;

struct Node {
  explicit Node(EngineOptions options = {}) : engine(Engine::start(*loop, io::real_clock(), options).value()) {}

  std::unique_ptr<io::EpollLoop> loop = io::EpollLoop::open().value();
  std::unique_ptr<Engine> engine;
};

void done(benchmark::State& state) {
  const Node node;
  Completion completion;
  node.engine->run([&] { completion.complete(); });
  for (auto _ : state) benchmark::DoNotOptimize(node.engine->wait(completion));
}

void post_and_wait(benchmark::State& state, bool needed) {
  const Node node;
  if (needed) node.engine->need_background(true);
  Completion completion;
  for (auto _ : state) {
    completion.reset();
    node.engine->post_and_stay([&] { completion.complete(); });
    node.engine->wait(completion);
  }
  state.counters["summons"] = static_cast<double>(node.engine->counters().summons);
  if (needed) node.engine->need_background(false);
}

void post_wait(benchmark::State& state) { post_and_wait(state, false); }
void needed(benchmark::State& state) { post_and_wait(state, true); }

// Is rung by a peer: an eventfd that a spinning thread reads and a blocked one watches.
class Bell final : public io::Poller, public io::Watcher {
 public:
  explicit Bell(Node& node) : node_(node) {
    node_.engine->run([this] {
      node_.loop->add_poller(*this);
      node_.loop->watch(descriptor_, {.read = true}, *this).value();
    });
  }
  ~Bell() override {
    node_.engine->run([this] {
      node_.loop->unwatch(descriptor_);
      node_.loop->remove_poller(*this);
    });
    close(descriptor_);
  }

  void ring() const {
    const std::uint64_t one = 1;
    if (write(descriptor_, &one, sizeof one) != sizeof one) std::abort();
  }
  void wait() {
    node_.engine->wait(rung_);
    rung_.reset();
  }

  bool poll() override {
    std::uint64_t count = 0;
    if (read(descriptor_, &count, sizeof count) != sizeof count) return false;
    rung_.complete();
    return true;
  }
  void on_ready(io::Readiness) override { poll(); }

 private:
  Node& node_;
  Completion rung_;
  const int descriptor_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
};

void ping_pong(benchmark::State& state) {
  EngineOptions options;
  options.spin = std::chrono::microseconds(state.range(0));
  Node here(options);
  Node there(options);
  Bell mine(here);
  Bell theirs(there);
  std::atomic<bool> over = false;
  std::thread peer([&] {
    while (true) {
      theirs.wait();
      if (over.load()) return;
      mine.ring();
    }
  });
  for (auto _ : state) {
    theirs.ring();
    mine.wait();
  }
  over = true;
  theirs.ring();
  peer.join();
}

// Each thread completes what the other waits for.
void hand_over(benchmark::State& state) {
  const Node node;
  std::array<Completion, 2> turns;
  std::atomic<bool> over = false;
  const auto give = [&](std::size_t to) { node.engine->post([&turns, to] { turns[to].complete(); }); };
  const auto take = [&](std::size_t me) {
    node.engine->wait(turns[me]);
    turns[me].reset();
  };
  std::thread other([&] {
    while (true) {
      take(1);
      if (over.load()) return;
      give(0);
    }
  });
  for (auto _ : state) {
    give(1);
    take(0);
  }
  over = true;
  give(1);
  other.join();
}

BENCHMARK(done);
BENCHMARK(post_wait);
BENCHMARK(needed);
BENCHMARK(ping_pong)->ArgName("spin_us")->Arg(0)->Arg(50)->UseRealTime();
BENCHMARK(hand_over)->UseRealTime();

}  // namespace
}  // namespace nexar::bench

BENCHMARK_MAIN();
