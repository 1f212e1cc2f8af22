// The threads that run handlers.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "nexar/result.h"
#include "rpc/limits.h"
#include "rpc/pool_state.h"
#include "rpc/served_table.h"

namespace nexar::rpc {

// Runs calls on threads of its own, which are started when they are first needed and kept.
//
// Owned by the service; stopped before it goes. Thread: submit, withdraw and take_finished on the engine, stop on any that is no worker.
class WorkerPool {
 public:
  using Job = std::shared_ptr<Served>;

  // `run` is called on a worker and throws nothing. `notify` is called, on any thread, when take_finished() has something after it had
  // nothing.
  WorkerPool(const PoolLimits& limits, std::function<void(Served&)> run, std::function<void()> notify);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Queues a call. kOverloaded, saying why, when it cannot be.
  Result<void> submit(Job job);

  // Takes a call back that has not begun; false when it has.
  bool withdraw(const Job& job);

  // Calls that have run, and those that were queued when no thread was left (Served::refused).
  std::vector<Job> take_finished();

  // Takes nothing more, and ends the threads when everything has run that was not withdrawn. Meanwhile `slow` is called every `patience`
  // with how many handlers run.
  void stop(std::chrono::nanoseconds patience, const std::function<void(std::size_t running)>& slow);

  std::size_t threads() const;

  // While it lives the calling thread waits in nexar; if it is a worker, of whatever pool, another one may take its place.
  class Wait {
   public:
    Wait();
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    WorkerPool* pool_;
  };

  // Whether the calling thread is a worker of this pool.
  bool is_worker() const;

 private:
  void run_thread();
  void add_threads(std::unique_lock<std::mutex>& lock);
  void begin_wait();
  void end_wait();
  void finish(Job job, std::unique_lock<std::mutex>& lock);

  const PoolLimits limits_;
  const std::function<void(Served&)> run_;
  const std::function<void()> notify_;

  mutable std::mutex mutex_;
  std::condition_variable work_;  // idle threads sleep here
  std::condition_variable done_;  // and whoever stops the pool
  PoolState state_;
  std::deque<Job> queue_;      // as long as PoolLimits::queue says
  std::vector<Job> finished_;  // each is a call that ServedTable has admitted
  std::vector<std::thread> threads_;
  bool stopping_ = false;
};

}  // namespace nexar::rpc
