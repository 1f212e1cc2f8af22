// The real event loop.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "io/clock.h"
#include "io/file_descriptor.h"
#include "io/loop.h"

struct epoll_event;

namespace nexar::io {

struct LoopOptions {
  // epoll_pwait2, which waits for nanoseconds. The loop finds out by itself that a kernel before 5.11 has none; waits are then rounded up
  // to whole milliseconds. False: do not even try.
  bool precise_wait = true;
};

// A Loop over epoll. Pollers run on every turn; while turns do not block, epoll is asked only on every kTurnsPerEpoll-th of them, because
// asking makes a turn that reads one socket half as long again (1.5 instead of 1.0 microseconds on a small virtual machine).
class EpollLoop final : public Loop {
 public:
  // Descriptors that are only watched are served at least this often while the loop spins: about every 16 microseconds.
  static constexpr int kTurnsPerEpoll = 16;

  // How long hurry() lasts.
  static constexpr base::Duration kHurry = std::chrono::milliseconds(1);

  // What one epoll call brings at most; the kernel gives the rest next time, in turn, so no descriptor starves.
  static constexpr int kEventsPerWait = 64;

  // `clock` outlives the loop.
  static Result<std::unique_ptr<EpollLoop>> open(const Clock& clock = real_clock(), LoopOptions options = {});

  base::Time now() const override { return now_; }
  base::Time refresh() override;
  Result<void> watch(int fd, Interest interest, Watcher& watcher) override;
  void change(int fd, Interest interest) override;
  void unwatch(int fd) override;
  void add_poller(Poller& poller) override;
  void remove_poller(Poller& poller) override;
  void flush_later(Poller& poller) override;
  void hurry() override;
  bool is_hurried() const override { return now_ < hurried_until_; }
  bool turn(base::Duration max_wait) override;
  void post(std::function<void()> work) override;
  void wake() override;

 private:
  // What is known of a descriptor. The generation tells an event of an earlier watch on the same number from one of this watch.
  struct Watch {
    Watcher* watcher = nullptr;
    Interest interest;
    std::uint32_t generation = 0;
  };

  EpollLoop(const Clock& clock, LoopOptions options, FileDescriptor epoll, FileDescriptor bell);

  Watch& watch_of(int fd);
  int control(int operation, int fd, const Watch& watch);
  base::Duration time_to_wait(base::Duration max_wait);
  bool serve_descriptors(base::Duration wait);
  int wait_for_events(epoll_event* events, base::Duration wait);
  bool dispatch(const epoll_event& event);
  bool run_posted();
  bool run_pollers();
  bool run_next_in_turn(std::size_t count);
  void flush();
  bool fall_asleep();
  void wake_up();
  void ring();

  // Touched only by the thread that runs the loop.
  const Clock& clock_;
  bool precise_wait_;
  bool turning_ = false;
  bool pollers_removed_ = false;  // there are null pointers among the pollers
  int turns_without_epoll_ = 0;
  base::Time now_;
  base::Time hurried_until_{};
  FileDescriptor epoll_;
  FileDescriptor bell_;         // an eventfd; written to wake a thread from its wait
  std::vector<Watch> watches_;  // by descriptor: the kernel gives out the lowest free number
  std::vector<Poller*> pollers_;
  std::vector<Poller*> to_flush_;
  std::size_t next_in_turn_ = 0;                // the first to be asked of the pollers that take turns
  std::vector<std::function<void()>> running_;  // what was posted and is being run

  // Touched by all.
  std::atomic<bool> asleep_ = false;      // a thread waits, or is about to
  std::atomic<bool> woken_ = false;       // wake() was called and no turn has noticed
  std::atomic<bool> has_posted_ = false;  // posted_ is not empty
  std::mutex posted_mutex_;
  std::vector<std::function<void()>> posted_;
};

}  // namespace nexar::io
