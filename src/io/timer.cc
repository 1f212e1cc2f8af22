#include "io/timer.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "io/loop.h"

namespace nexar::io {
namespace {

constexpr std::size_t kChildren = 4;

std::size_t parent_of(std::size_t position) { return (position - 1) / kChildren; }
std::size_t first_child_of(std::size_t position) { return position * kChildren + 1; }

}  // namespace

Timer::Timer(Loop& loop, std::function<void()> callback) : Timer(loop.timers(), std::move(callback)) {}

Timer::Timer(TimerQueue& queue, std::function<void()> callback) : queue_(queue), callback_(std::move(callback)) {
  NEXAR_ASSERT(callback_ != nullptr, "a timer calls something");
}

Timer::~Timer() {
  cancel();
  queue_.forget(*this);
}

void Timer::set(base::Time time) { queue_.set(*this, time); }

void Timer::cancel() {
  if (is_set()) queue_.remove(*this);
}

TimerQueue::~TimerQueue() { NEXAR_ASSERT(heap_.empty(), "timers are destroyed before their loop"); }

// While callbacks run, nothing that they set goes before what was due already: times in the past count as now, and the order number puts
// them last among those.
bool TimerQueue::run_due(base::Time now) {
  NEXAR_ASSERT(running_at_ == base::Time::min(), "a timer's callback does not run timers");
  if (next() > now) return false;
  running_at_ = now;
  const std::uint64_t end = next_order_;
  while (!heap_.empty() && heap_.front().due <= now && heap_.front().order < end) run(*heap_.front().timer);
  running_at_ = base::Time::min();
  return true;
}

// The callback is moved out while it runs, because it may destroy the timer that holds it.
void TimerQueue::run(Timer& timer) {
  remove(timer);
  running_ = &timer;
  std::function<void()> callback = std::move(timer.callback_);
  callback();
  if (running_ == &timer) timer.callback_ = std::move(callback);
  running_ = nullptr;
}

void TimerQueue::forget(const Timer& timer) {
  if (running_ == &timer) running_ = nullptr;
}

void TimerQueue::set(Timer& timer, base::Time time) {
  const Entry entry{std::max(time, running_at_), next_order_++, &timer};
  if (!timer.is_set()) {
    timer.position_ = heap_.size();
    heap_.push_back(entry);
  }
  settle(timer.position_, entry);
}

void TimerQueue::remove(Timer& timer) {
  const std::size_t hole = std::exchange(timer.position_, Timer::kNotQueued);
  const Entry last = heap_.back();
  heap_.pop_back();
  if (last.timer != &timer) settle(hole, last);
}

// Puts `entry` where it belongs, starting from `position`, whose former content is not needed any more.
void TimerQueue::settle(std::size_t position, const Entry& entry) {
  while (position > 0 && before(entry, heap_[parent_of(position)])) {
    put(position, heap_[parent_of(position)]);
    position = parent_of(position);
  }
  for (std::size_t child = first_child_of(position); child < heap_.size(); child = first_child_of(position)) {
    const std::size_t end = std::min(child + kChildren, heap_.size());
    const std::size_t first = static_cast<std::size_t>(
        std::min_element(heap_.begin() + static_cast<std::ptrdiff_t>(child), heap_.begin() + static_cast<std::ptrdiff_t>(end), before) -
        heap_.begin());
    if (!before(heap_[first], entry)) break;
    put(position, heap_[first]);
    position = first;
  }
  put(position, entry);
}

void TimerQueue::put(std::size_t position, const Entry& entry) {
  heap_[position] = entry;
  heap_[position].timer->position_ = position;
}

}  // namespace nexar::io
