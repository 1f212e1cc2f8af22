#include "device/fake_adapter.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace nexar::test {
namespace {

constexpr int kPollsMax = 7;              // a step ends after at most so many
constexpr std::uintptr_t kGap = 1 << 12;  // between allocations, so that running over one is noticed

}  // namespace

DevicePointer FakeAdapter::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::uintptr_t at = next_address_;
  memory_[at] = std::vector<std::byte>(bytes, std::byte{0xdd});
  next_address_ += (bytes + 2 * kGap) / kGap * kGap;
  return DevicePointer(at);
}

std::byte* FakeAdapter::find(DevicePointer at, std::size_t bytes) const {
  auto found = memory_.upper_bound(at.address());
  if (found == memory_.begin()) return nullptr;
  --found;
  const std::size_t offset = at.address() - found->first;
  if (offset > found->second.size() || bytes > found->second.size() - offset) return nullptr;
  return const_cast<std::byte*>(found->second.data()) + offset;
}

void FakeAdapter::write(DevicePointer to, const void* from, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes == 0) return;
  std::byte* at = find(to, bytes);
  if (at == nullptr) std::abort();
  std::memcpy(at, from, bytes);
}

void FakeAdapter::read(DevicePointer from, void* to, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  if (bytes == 0) return;
  const std::byte* at = find(from, bytes);
  if (at == nullptr) std::abort();
  std::memcpy(to, at, bytes);
}

void FakeAdapter::fail_after(std::size_t steps) {
  const std::lock_guard lock(mutex_);
  fail_after_ = steps;
}

void FakeAdapter::hold() {
  const std::lock_guard lock(mutex_);
  held_ = true;
}

void FakeAdapter::release() {
  const std::lock_guard lock(mutex_);
  held_ = false;
}

std::size_t FakeAdapter::pending() const {
  const std::lock_guard lock(mutex_);
  return steps_.size();
}

std::size_t FakeAdapter::most_pending() const {
  const std::lock_guard lock(mutex_);
  return most_pending_;
}

std::size_t FakeAdapter::posted() const {
  const std::lock_guard lock(mutex_);
  return posted_;
}

std::size_t FakeAdapter::registrations() const {
  const std::lock_guard lock(mutex_);
  return registered_.size();
}

std::size_t FakeAdapter::registrations_ever() const {
  const std::lock_guard lock(mutex_);
  return registrations_ever_;
}

void FakeAdapter::stage(DevicePointer from, void* to, std::size_t bytes, DeviceStream, DeviceCompletion& done) {
  if (bytes > 0) std::memset(to, 0xee, bytes);
  post({.stages = true, .device = from, .host = to, .bytes = bytes, .done = &done});
}

void FakeAdapter::place(const void* from, DevicePointer to, std::size_t bytes, DeviceStream, DeviceCompletion& done) {
  post({.stages = false, .device = to, .host = const_cast<void*>(from), .bytes = bytes, .done = &done});
}

void FakeAdapter::post(Step step) {
  const std::lock_guard lock(mutex_);
  ++posted_;
  if (fail_after_ && (*fail_after_)-- == 0) {
    fail_after_.reset();
    step.error = Error(ErrorCode::kDevice, "the fake device failed as it was told");
  } else if (step.bytes > 0 && find(step.device, step.bytes) == nullptr) {
    step.error = Error(ErrorCode::kDevice, "address " + std::to_string(step.device.address()) + " and " + std::to_string(step.bytes) +
                                               " bytes are no memory of the fake device");
  }
  step.polls_left = static_cast<int>(random_() % kPollsMax);
  steps_.push_back(std::move(step));
  most_pending_ = std::max(most_pending_, steps_.size());
}

bool FakeAdapter::poll() {
  std::vector<Step> ended;
  {
    const std::lock_guard lock(mutex_);
    if (held_) return false;
    for (Step& step : steps_)
      if (step.polls_left-- == 0) ended.push_back(step);
    std::erase_if(steps_, [](const Step& step) { return step.polls_left < 0; });
    std::shuffle(ended.begin(), ended.end(), random_);
    for (Step& step : ended) {
      if (step.error || step.bytes == 0) continue;
      std::byte* device = find(step.device, step.bytes);
      std::memcpy(step.stages ? step.host : device, step.stages ? device : step.host, step.bytes);
    }
  }
  for (Step& step : ended) step.done->complete(step.error ? Result<void>(*step.error) : Result<void>());
  return DeviceAdapter::poll() || !ended.empty();
}

Result<DeviceEvent> FakeAdapter::record(DeviceStream) {
  const std::lock_guard lock(mutex_);
  const DeviceEvent event{next_event_++};
  not_passed_.insert(event);
  return event;
}

Result<void> FakeAdapter::wait(DeviceStream, DeviceEvent event) {
  const std::lock_guard lock(mutex_);
  waited_for_.push_back(event);
  return {};
}

Result<bool> FakeAdapter::passed(DeviceEvent event) {
  const std::lock_guard lock(mutex_);
  return !not_passed_.contains(event);
}

void FakeAdapter::pass(DeviceEvent event) {
  const std::lock_guard lock(mutex_);
  not_passed_.erase(event);
}

std::vector<DeviceEvent> FakeAdapter::waited_for() const {
  const std::lock_guard lock(mutex_);
  return waited_for_;
}

Result<std::uint64_t> FakeAdapter::register_memory(void*, std::size_t) {
  const std::lock_guard lock(mutex_);
  registered_.insert(++registrations_ever_);
  return registrations_ever_;
}

void FakeAdapter::release_memory(std::uint64_t handle) {
  const std::lock_guard lock(mutex_);
  if (registered_.erase(handle) != 1) std::abort();
}

}  // namespace nexar::test
