#include "rpc/worker_pool.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "io/thread.h"

namespace nexar::rpc {
namespace {

thread_local WorkerPool* current_pool = nullptr;  // of a worker
thread_local int waits = 0;                       // a wait inside another one is one wait

}  // namespace

WorkerPool::WorkerPool(const PoolLimits& limits, std::function<void(Served&)> run, std::function<void()> notify)
    : limits_(limits), run_(std::move(run)), notify_(std::move(notify)), state_(limits) {}

WorkerPool::~WorkerPool() {
  stop(std::chrono::hours(1), [](std::size_t) {});
}

Result<void> WorkerPool::submit(Job job) {
  std::unique_lock lock(mutex_);
  switch (stopping_ ? PoolState::Admission::kNoThreadLeft : state_.admit()) {
    case PoolState::Admission::kFull:
      return Error(ErrorCode::kOverloaded, fmt::format("{} calls wait for a worker, as many as may (rpc_queue)", limits_.queue));
    case PoolState::Admission::kNoThreadLeft:
      return Error(ErrorCode::kOverloaded,
                   fmt::format("all {} workers and {} spare ones wait (rpc_workers, rpc_spare_workers)", limits_.workers, limits_.spares));
    case PoolState::Admission::kQueued: break;
  }
  queue_.push_back(std::move(job));
  add_threads(lock);
  if (state_.may_take() && state_.idle() > 0) work_.notify_one();
  if (state_.threads() > 0) return {};
  queue_.pop_back();
  state_.withdrawn();
  return Error(ErrorCode::kOverloaded, "no thread could be started to run handlers");
}

// The lock is held: a thread that begins waits for it.
void WorkerPool::add_threads(std::unique_lock<std::mutex>&) {
  while (!stopping_ && state_.wants_thread()) {
    state_.thread_added();
    Result<std::thread> thread = io::start_thread("nexar-worker", [this] { run_thread(); });
    if (!thread) return state_.thread_refused();
    threads_.push_back(*std::move(thread));
  }
}

bool WorkerPool::withdraw(const Job& job) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find(queue_.begin(), queue_.end(), job);
  if (found == queue_.end()) return false;
  queue_.erase(found);
  state_.withdrawn();
  return true;
}

std::vector<WorkerPool::Job> WorkerPool::take_finished() {
  const std::lock_guard lock(mutex_);
  return std::exchange(finished_, {});
}

void WorkerPool::finish(Job job, std::unique_lock<std::mutex>& lock) {
  finished_.push_back(std::move(job));
  if (finished_.size() > 1) return;  // the engine knows
  lock.unlock();
  notify_();
  lock.lock();
}

void WorkerPool::run_thread() {
  current_pool = this;
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return stopping_ || state_.may_take(); });
    if (!state_.may_take()) return;
    state_.begins();
    Job job = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    run_(*job);
    lock.lock();
    state_.ends();
    finish(std::move(job), lock);
    if (stopping_) done_.notify_all();
    if (state_.may_take() && state_.idle() > 1) work_.notify_one();  // one of those that were not called because all were active
  }
}

void WorkerPool::begin_wait() {
  std::unique_lock lock(mutex_);
  state_.waits();
  if (queue_.empty()) return;
  if (state_.is_stuck()) {  // what is queued may be what everybody waits for
    for (Job& job : std::exchange(queue_, {})) {
      state_.withdrawn();
      job->refused = true;
      finish(std::move(job), lock);
    }
    return;
  }
  add_threads(lock);
  if (state_.may_take() && state_.idle() > 0) work_.notify_one();
}

void WorkerPool::end_wait() {
  const std::lock_guard lock(mutex_);
  state_.resumes();
}

void WorkerPool::stop(std::chrono::nanoseconds patience, const std::function<void(std::size_t)>& slow) {
  NEXAR_ASSERT(!is_worker(), "a handler does not end the pool that runs it");
  std::unique_lock lock(mutex_);
  stopping_ = true;
  work_.notify_all();
  const auto over = [this] { return queue_.empty() && state_.active() + state_.waiting() == 0; };
  while (!done_.wait_for(lock, patience, over)) {
    const std::size_t running = state_.active() + state_.waiting();
    lock.unlock();
    slow(running);
    lock.lock();
  }
  lock.unlock();
  for (std::thread& thread : std::exchange(threads_, {})) thread.join();
}

std::size_t WorkerPool::threads() const {
  const std::lock_guard lock(mutex_);
  return state_.threads();
}

bool WorkerPool::is_worker() const { return current_pool == this; }

WorkerPool::Wait::Wait() : pool_(current_pool) {
  if (pool_ != nullptr && waits++ == 0) pool_->begin_wait();
}

WorkerPool::Wait::~Wait() {
  if (pool_ != nullptr && --waits == 0) pool_->end_wait();
}

}  // namespace nexar::rpc
