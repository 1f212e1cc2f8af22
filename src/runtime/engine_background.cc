// The engine's own thread: drives when nobody else does.
//
//            nobody has driven for `idle`, or needed
//   dozes  -------------------------------------------> drives
//     |  ^ <------------------------------------------
//     |  |               a thread waits
//     |  |  the baton is dropped
//     v  |
//   sleeps deeply: one and the same thread has been driving for two looks
//
// While threads wait again and again it looks up every `doze`, so that none of them has to tell it anything. While one waits for long it
// does not wake up at all, and is told when that one leaves.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "runtime/engine.h"

namespace nexar::runtime {
namespace {

using base::Duration;

constexpr Duration kLongestTurn = std::chrono::hours(1);  // it is woken by events; this only keeps sums of times small

}  // namespace

void Engine::need_background(bool needed) {
  if (!needed) {  // nobody has to hear of it
    const int before = needed_.fetch_sub(1, std::memory_order_relaxed);
    NEXAR_ASSERT(before > 0, "what is no longer needed was needed");
    return;
  }
  const std::lock_guard lock(mutex_);
  needed_.fetch_add(1, std::memory_order_relaxed);
  if (!is_driven()) summon();
}

// Nobody drives and nobody sleeps who could be called. A thread that dozes finds that out by itself, soon enough unless it is needed; one
// that sleeps deeply does not.
void Engine::summon() {
  if (background_ == nullptr) return;  // stopped
  Background& background = *background_;
  const bool deaf = background.sleep == Sleep::kAwake || background.summoned || background.quiet;
  if (deaf || (background.sleep == Sleep::kDoze && needed_ == 0)) return;
  background.summoned = true;
  ++counters_.summons;
  background.word.notify_one();
}

void Engine::run_background() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (should_take_over())
      drive_in_background(lock);
    else
      sleep_in_background(lock);
  }
}

bool Engine::should_take_over() const {
  if (is_driven()) return false;
  const Duration idle = clock_.now() - idle_since_;
  if (background_->keeps_away && idle < options_.quiet) return false;
  return needed_ > 0 || idle >= options_.idle;
}

// It never spins: what nobody waits for may take a wake-up longer, and the cores belong to the application.
void Engine::drive_in_background(std::unique_lock<std::mutex>& lock) {
  ++counters_.background_leads;
  if (needed_ == 0) ++counters_.idle_takeovers;
  background_->summoned = false;
  background_->keeps_away = false;
  leave_.store(false);
  take_baton(Driver::kBackground);
  lock.unlock();
  while (!leave_.load()) turn(kLongestTurn);
  lock.lock();
  drop_baton();
  background_->keeps_away = true;
  call_next();
}

void Engine::sleep_in_background(std::unique_lock<std::mutex>& lock) {
  Background& background = *background_;
  const bool in_vain = std::exchange(background.summoned, false) && needed_ > 0;
  if (in_vain) {
    ++counters_.vain_summons;
    background.keeps_away = true;
  }
  const bool calm = std::exchange(background.seen_changes, changes_) == changes_;
  const auto roused = [&] { return background.summoned || stopping_; };

  if (calm && is_driven()) {
    background.sleep = Sleep::kDeep;
    background.word.wait(lock, roused);
    if (!is_driven()) background.seen_changes = changes_;  // it only dozed off now: look again after `idle`, not after `doze`
  } else {
    background.sleep = Sleep::kDoze;
    background.quiet = background.keeps_away && needed_ > 0 && options_.quiet > Duration::zero();
    background.word.wait_for(lock, background.quiet ? time_to_keep_away() : time_to_doze(calm), roused);
    background.quiet = false;
  }
  background.sleep = Sleep::kAwake;
}

// Until nobody has driven for `quiet`, if nobody does any more.
Duration Engine::time_to_keep_away() const {
  return is_driven() ? options_.quiet : std::clamp(idle_since_ + options_.quiet - clock_.now(), Duration::zero(), options_.quiet);
}

Duration Engine::time_to_doze(bool calm) const {
  if (calm && !is_driven()) return std::max(idle_since_ + options_.idle - clock_.now(), Duration::zero());
  return options_.doze;
}

void Engine::stop() {
  if (background_ == nullptr) return;
  if (is_forked()) {
    static auto& forgotten = *new std::vector<std::unique_ptr<Background>>();  // reachable, so that no leak checker objects
    forgotten.push_back(std::move(background_));
    return;
  }
  NEXAR_ASSERT(!is_inside(), "a callback does not stop the engine that calls it");
  {
    const std::lock_guard lock(mutex_);
    NEXAR_ASSERT(followers_.empty() && driver_ != Driver::kWaiter, "nobody waits when the engine stops");
    stopping_ = true;
    leave_.store(true);
    background_->word.notify_one();
  }
  loop_.wake();
  if (background_->thread.joinable()) background_->thread.join();
  background_.reset();
}

}  // namespace nexar::runtime
