#include "runtime/engine.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "io/host.h"
#include "io/thread.h"
#include "rpc/worker_pool.h"
#include "runtime/waiter.h"

namespace nexar::runtime {
namespace {

using base::Duration;
using base::Time;

// What ends a wait is always an event; this only keeps sums of times small.
constexpr Duration kLongestWait = std::chrono::hours(1);

// While it spins a thread offers its core to others every so many turns: whoever it waits for may be queued on the same one, and would
// otherwise get it only when the spinning ends. Seldom enough not to be seen where there are cores for all.
constexpr std::uint64_t kTurnsPerOffer = 16;

// Set while this thread turns a loop. One mark for all engines: a callback of one node that waits for another would hold up the first.
thread_local bool inside = false;

class InsideMark {
 public:
  InsideMark() { inside = true; }
  ~InsideMark() { inside = false; }
  InsideMark(const InsideMark&) = delete;
  InsideMark& operator=(const InsideMark&) = delete;
};

}  // namespace

Engine::Engine(io::Loop& loop, const io::Clock& clock, EngineOptions options)
    : loop_(loop),
      clock_(clock),
      options_(options),
      forks_at_start_(io::forks()),
      spins_(io::host().cores > 1),
      idle_since_(clock.now()),
      background_(std::make_unique<Background>()) {}

Result<std::unique_ptr<Engine>> Engine::start(io::Loop& loop, const io::Clock& clock, EngineOptions options) {
  std::unique_ptr<Engine> engine(new Engine(loop, clock, options));
  Result<std::thread> thread = io::start_thread("nexar-engine", [raw = engine.get()] { raw->run_background(); });
  if (!thread) return std::move(thread).error();
  engine->background_->thread = std::move(*thread);
  return engine;
}

Engine::~Engine() { stop(); }

void Engine::set_core_share(const cluster::CoreShare& share) {
  crowded_.store(share.crowded, std::memory_order_relaxed);
  spins_.store(share.spins, std::memory_order_relaxed);
}

Duration Engine::spin_time() const { return spins_.load(std::memory_order_relaxed) ? options_.spin : Duration::zero(); }

bool Engine::is_inside() { return inside; }

bool Engine::is_forked() const { return io::forks() != forks_at_start_; }

Result<void> Engine::check_outside(std::string_view call) const {
  if (is_inside())
    return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{} was called from inside a callback of nexar; callbacks run on the thread that would have to answer, so they "
                    "may not call nexar",
                    call));
  if (is_forked())
    return Error(ErrorCode::kUnsupported, fmt::format("{} was called in a child of fork; the node and its links belong to the parent, and "
                                                      "the child has to start its own",
                                                      call));
  return {};
}

bool Engine::turn(Duration max_wait) noexcept {
  const InsideMark mark;
  const bool busy = loop_.turn(max_wait);
  NEXAR_ASSERT(!is_forked(), "a callback that forks does not return in the child: it execs or exits");
  return busy;
}

bool Engine::wait(Completion& completion, std::optional<Time> deadline, int spins) {
  if (completion.is_done()) return true;
  const std::array<Completion*, 1> one = {&completion};
  return wait_any(one, deadline, spins).has_value();
}

std::optional<std::size_t> Engine::wait_any(std::span<Completion* const> completions, std::optional<Time> deadline, int spins) {
  Waiter me(mutex_, completions, deadline, spins);
  if (const auto done = me.first_done()) return done;
  const rpc::WorkerPool::Wait wait;  // a handler that waits makes room for another
  NEXAR_ASSERT(!is_inside(), "calls from inside are refused before they wait");
  NEXAR_ASSERT(!is_forked(), "calls in a child of fork are refused before they wait");

  std::unique_lock lock(mutex_);
  NEXAR_ASSERT(!stopping_, "nobody waits for an engine that has stopped");
  do {
    if (driver_ == Driver::kNobody)
      lead(me, lock);
    else
      follow(me, lock);
  } while (!me.is_over(deadline ? clock_.now() : Time::min()));

  // Whoever goes leaves no baton on the ground: it had it, or it was called to take it, or it just sees it lying there.
  if (driver_ == Driver::kNobody) call_next();
  return me.first_done();
}

void Engine::post_and_stay(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (driver_ == Driver::kBackground) leave_.store(true);
  }
  loop_.post(std::move(work));
}

void Engine::run(const std::function<void()>& work) {
  Completion done;
  post_and_stay([&] {
    work();
    done.complete();
  });
  wait(done);
}

void Engine::lead(const Waiter& me, std::unique_lock<std::mutex>& lock) {
  take_baton(Driver::kWaiter);
  ++counters_.leads;
  lock.unlock();
  const std::uint64_t blocked_turns = drive_for(me);
  lock.lock();
  counters_.blocked_turns += blocked_turns;
  drop_baton();
}

// Spins as long as something happens, and for a while after; then blocks. Returns how often it blocked.
std::uint64_t Engine::drive_for(const Waiter& me) {
  std::uint64_t blocked_turns = 0;
  std::uint64_t idle_turns = 0;
  const Duration spin = me.spins() * spin_time();
  Time now = loop_.refresh();
  Time spin_until = now + spin;
  do {
    const bool spins = now < spin_until;
    const Duration left = me.deadline() ? std::max(*me.deadline() - now, Duration::zero()) : kLongestWait;
    const bool busy = turn(spins ? Duration::zero() : std::min(left, kLongestWait));
    now = loop_.now();
    if (busy || !spins) spin_until = now + spin;
    if (!spins) ++blocked_turns;
    const bool crowded = crowded_.load(std::memory_order_relaxed);
    if (spins && !busy && ++idle_turns % (crowded ? 1 : kTurnsPerOffer) == 0) offers_.make(crowded, clock_);
  } while (!me.is_over(now));
  return blocked_turns;
}

void Engine::follow(Waiter& me, std::unique_lock<std::mutex>& lock) {
  if (!me.enlist(lock)) return;
  ++counters_.follows;
  followers_.push_back(&me);
  if (driver_ == Driver::kBackground) take_from_background(me, lock);
  sleep(me, lock);
  std::erase(followers_, &me);
  if (candidate_ == &me) candidate_ = nullptr;
  me.withdraw(lock);
}

// The background thread is most likely blocked. It needs one wake-up to come out; spinning for it saves the second one, back to here.
void Engine::take_from_background(const Waiter& me, std::unique_lock<std::mutex>& lock) {
  leave_.store(true);
  lock.unlock();
  loop_.wake();
  for (const Time end = clock_.now() + spin_time(); !me.was_called() && clock_.now() < end;) std::this_thread::yield();
  lock.lock();
}

void Engine::sleep(Waiter& me, std::unique_lock<std::mutex>& lock) {
  while (!me.was_called()) {
    const Duration left = me.deadline() ? *me.deadline() - clock_.now() : kLongestWait;
    if (left <= Duration::zero()) return;
    me.sleep(lock, std::min(left, kLongestWait));
  }
}

void Engine::take_baton(Driver driver) {
  driver_ = driver;
  ++changes_;
}

void Engine::drop_baton() {
  driver_ = Driver::kNobody;
  ++changes_;
  idle_since_ = loop_.now();
}

// The baton lies on the ground: somebody must know. A follower that is called takes it if it still lies there when it comes; until then any
// thread that begins to wait may take it, because the called one needs a wake-up to come and that one is here. One call at a time is
// enough: the called one, too, passes on what it does not take.
void Engine::call_next() {
  if (candidate_ != nullptr) return;
  const auto next = std::find_if(followers_.begin(), followers_.end(), [](const Waiter* waiter) { return !waiter->was_completed(); });
  if (next == followers_.end()) return summon();
  candidate_ = *next;
  ++counters_.calls;
  candidate_->call();
}

EngineCounters Engine::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

}  // namespace nexar::runtime
