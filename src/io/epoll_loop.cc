#include "io/epoll_loop.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <utility>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/assert.h"
#include "io/kernel_error.h"

namespace nexar::io {
namespace {

using base::Duration;

constexpr std::uint64_t kBell = UINT64_MAX;  // what epoll calls the bell; no descriptor has that number

std::uint32_t epoll_mask(Interest interest) { return (interest.read ? EPOLLIN : 0u) | (interest.write ? EPOLLOUT : 0u); }

// The kernel lets timers of ordinary threads come 50 microseconds late, to save power. QUIC's are shorter than that.
void set_timer_slack_once() {
  thread_local const bool done = prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul) == 0;  // refused only in odd sandboxes: then late by 50 us
  static_cast<void>(done);
}

// Seccomp filters that are older than the system call answer EPERM.
bool is_missing(int number) { return number == ENOSYS || number == EPERM; }

}  // namespace

Result<std::unique_ptr<EpollLoop>> EpollLoop::open(const Clock& clock, LoopOptions options) {
  FileDescriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return kernel_error("cannot create an epoll descriptor", errno);
  FileDescriptor bell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell) return kernel_error("cannot create an eventfd", errno);
  // Edge-triggered: every write is one event, and nobody ever has to read.
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.u64 = kBell}};
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, bell.get(), &event) != 0) return kernel_error("cannot watch an eventfd", errno);
  return std::unique_ptr<EpollLoop>(new EpollLoop(clock, options, std::move(epoll), std::move(bell)));
}

EpollLoop::EpollLoop(const Clock& clock, LoopOptions options, FileDescriptor epoll, FileDescriptor bell)
    : clock_(clock), precise_wait_(options.precise_wait), now_(clock.now()), epoll_(std::move(epoll)), bell_(std::move(bell)) {}

base::Time EpollLoop::refresh() { return now_ = std::max(now_, clock_.now()); }

Result<void> EpollLoop::watch(int fd, Interest interest, Watcher& watcher) {
  NEXAR_ASSERT(fd >= 0, "a descriptor that is open");
  const auto index = static_cast<std::size_t>(fd);
  if (index >= watches_.size()) watches_.resize(index + 1);
  Watch& entry = watches_[index];
  NEXAR_ASSERT(entry.watcher == nullptr, "a descriptor has one watcher");
  const Watch wanted{&watcher, interest, entry.generation};
  if (control(EPOLL_CTL_ADD, fd, wanted) != 0) return kernel_error(fmt::format("cannot watch descriptor {}", fd), errno);
  entry = wanted;
  return {};
}

void EpollLoop::change(int fd, Interest interest) {
  Watch& entry = watch_of(fd);
  if (entry.interest.read == interest.read && entry.interest.write == interest.write) return;
  entry.interest = interest;
  NEXAR_ASSERT(control(EPOLL_CTL_MOD, fd, entry) == 0, "a descriptor is unwatched before it is closed");
}

void EpollLoop::unwatch(int fd) {
  Watch& entry = watch_of(fd);
  NEXAR_ASSERT(control(EPOLL_CTL_DEL, fd, entry) == 0, "a descriptor is unwatched before it is closed");
  entry.watcher = nullptr;
  ++entry.generation;
}

EpollLoop::Watch& EpollLoop::watch_of(int fd) {
  const auto index = static_cast<std::size_t>(fd);
  NEXAR_ASSERT(fd >= 0 && index < watches_.size() && watches_[index].watcher != nullptr, "the descriptor is watched");
  return watches_[index];
}

int EpollLoop::control(int operation, int fd, const Watch& watch) {
  const std::uint64_t name = std::uint64_t{watch.generation} << 32 | static_cast<std::uint32_t>(fd);
  epoll_event event{.events = epoll_mask(watch.interest), .data = {.u64 = name}};
  return epoll_ctl(epoll_.get(), operation, fd, &event);
}

void EpollLoop::add_poller(Poller& poller) {
  NEXAR_ASSERT(std::find(pollers_.begin(), pollers_.end(), &poller) == pollers_.end(), "a poller is added once");
  pollers_.push_back(&poller);
}

// Pollers may be running just now, so their places are closed up later.
void EpollLoop::remove_poller(Poller& poller) {
  const auto found = std::find(pollers_.begin(), pollers_.end(), &poller);
  NEXAR_ASSERT(found != pollers_.end(), "a poller is removed after it was added");
  *found = nullptr;
  pollers_removed_ = true;
  std::erase(to_flush_, &poller);
}

void EpollLoop::flush_later(Poller& poller) {
  if (turning_)
    to_flush_.push_back(&poller);
  else
    poller.flush();
}

void EpollLoop::flush() {
  while (!to_flush_.empty()) {
    Poller* poller = to_flush_.back();
    to_flush_.pop_back();
    poller->flush();
  }
}

void EpollLoop::hurry() { hurried_until_ = now_ + kHurry; }

bool EpollLoop::turn(Duration max_wait) {
  NEXAR_ASSERT(!turning_, "a callback does not run the loop that calls it");
  turning_ = true;
  refresh();
  const bool posted = run_posted();
  const bool polled = run_pollers();
  const bool timed = timers().run_due(now_);
  bool busy = posted || polled || timed;

  const Duration wait = busy ? Duration::zero() : time_to_wait(max_wait);
  if (wait > Duration::zero() || ++turns_without_epoll_ >= kTurnsPerEpoll) busy = serve_descriptors(wait) || busy;
  flush();
  turning_ = false;
  return busy;
}

Duration EpollLoop::time_to_wait(Duration max_wait) {
  return std::clamp(timers().next() - now_, Duration::zero(), std::max(max_wait, Duration::zero()));
}

bool EpollLoop::serve_descriptors(Duration wait) {
  turns_without_epoll_ = 0;
  flush();
  bool busy = false;
  const bool blocks = wait > Duration::zero() && fall_asleep();
  if (!blocks) busy = woken_.exchange(false) || busy;

  std::array<epoll_event, kEventsPerWait> events;
  const int count = wait_for_events(events.data(), blocks ? wait : Duration::zero());
  if (blocks) {
    wake_up();
    busy = woken_.exchange(false) || busy;
    refresh();
  }
  for (int i = 0; i < count; ++i) busy = dispatch(events[static_cast<std::size_t>(i)]) || busy;
  busy = run_posted() || busy;
  return timers().run_due(now_) || busy;
}

int EpollLoop::wait_for_events(epoll_event* events, Duration wait) {
  if (wait > Duration::zero()) set_timer_slack_once();
  int count = -1;
  if (precise_wait_) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(wait);
    const timespec timeout{.tv_sec = seconds.count(), .tv_nsec = (wait - seconds).count()};
    count = epoll_pwait2(epoll_.get(), events, kEventsPerWait, &timeout, nullptr);
    if (count < 0 && is_missing(errno)) precise_wait_ = false;
  }
  if (!precise_wait_) {
    const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(std::min<Duration>(wait, std::chrono::hours(24))).count();
    count = epoll_wait(epoll_.get(), events, kEventsPerWait, static_cast<int>(rounded));
  }
  NEXAR_ASSERT(count >= 0 || errno == EINTR, "epoll fails only by a signal");
  return std::max(count, 0);
}

bool EpollLoop::dispatch(const epoll_event& event) {
  if (event.data.u64 == kBell) return false;  // the flags tell why it rang
  const Watch watch = watches_[static_cast<std::uint32_t>(event.data.u64)];
  if (watch.watcher == nullptr || watch.generation != event.data.u64 >> 32) return false;  // unwatched by a callback before this one

  const bool hang_up = (event.events & (EPOLLHUP | EPOLLERR)) != 0;
  const Readiness ready{.read = watch.interest.read && (hang_up || (event.events & EPOLLIN) != 0),
                        .write = watch.interest.write && (hang_up || (event.events & EPOLLOUT) != 0),
                        .hang_up = hang_up};
  if (!ready.read && !ready.write && !ready.hang_up) return false;  // the interest has changed since
  watch.watcher->on_ready(ready);
  return true;
}

bool EpollLoop::run_posted() {
  if (!has_posted_.load()) return false;
  {
    const std::lock_guard lock(posted_mutex_);
    running_.swap(posted_);
    has_posted_.store(false);
  }
  for (std::function<void()>& work : running_) work();
  running_.clear();
  return true;
}

bool EpollLoop::run_pollers() {
  bool busy = false;
  const std::size_t count = pollers_.size();  // one that is added by another waits for the next turn
  for (std::size_t i = 0; i < count; ++i) {
    if (pollers_[i] != nullptr && !pollers_[i]->takes_turns()) busy = pollers_[i]->poll() || busy;
  }
  busy = run_next_in_turn(count) || busy;
  if (std::exchange(pollers_removed_, false)) std::erase(pollers_, nullptr);
  return busy;
}

// Whoever has nothing to do does not count.
bool EpollLoop::run_next_in_turn(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t asked = (next_in_turn_ + i) % count;
    if (pollers_[asked] == nullptr || !pollers_[asked]->takes_turns() || !pollers_[asked]->poll()) continue;
    next_in_turn_ = asked + 1;
    return true;
  }
  return false;
}

void EpollLoop::post(std::function<void()> work) {
  {
    const std::lock_guard lock(posted_mutex_);
    posted_.push_back(std::move(work));
    has_posted_.store(true);
  }
  ring();
}

void EpollLoop::wake() {
  woken_.store(true);
  ring();
}

// The waker sets its flag and then looks at asleep_; the sleeper sets asleep_ and then looks at the flags. All of that is sequentially
// consistent, so at least one of the two sees the other, and no wake-up is lost.
bool EpollLoop::fall_asleep() {
  asleep_.store(true);
  bool idle = true;
  for (Poller* poller : pollers_)
    if (poller != nullptr) idle = poller->fall_asleep() && idle;
  if (idle && !woken_.load() && !has_posted_.load()) return true;
  wake_up();
  return false;
}

void EpollLoop::wake_up() {
  asleep_.store(false);
  for (Poller* poller : pollers_)
    if (poller != nullptr) poller->wake_up();
}

// One waker writes for all of them. A bell that rings after the sleeper has left by itself only makes a later wait return early.
void EpollLoop::ring() {
  if (!asleep_.load() || !asleep_.exchange(false)) return;
  const std::uint64_t one = 1;
  const ssize_t written = write(bell_.get(), &one, sizeof one);
  NEXAR_ASSERT(written == sizeof one, "an eventfd counts to 2^64 and never blocks before");
}

}  // namespace nexar::io
