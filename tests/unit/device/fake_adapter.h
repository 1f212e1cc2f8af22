// A device of the tests: keeps its memory elsewhere, checks every access, and completes late, out of order and sometimes with an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "nexar/buffer.h"
#include "nexar/device.h"

namespace nexar::test {

// Addresses of its memory are no addresses of this process, so that whoever uses one as such crashes. A step copies when it completes, and
// the target of a stage is filled with 0xee until then: whoever looks too early, or gives memory away too early, gets a wrong result.
//
// Thread: any.
class FakeAdapter final : public DeviceAdapter {
 public:
  explicit FakeAdapter(std::uint32_t seed = 1) : random_(seed) {}

  // Memory of the device. It stays until the adapter goes.
  DevicePointer allocate(std::size_t bytes);
  void write(DevicePointer to, const void* from, std::size_t bytes);
  void read(DevicePointer from, void* to, std::size_t bytes) const;

  template <typename T>
  DevicePointer put(const std::vector<T>& elements) {
    const DevicePointer at = allocate(elements.size() * sizeof(T));
    write(at, elements.data(), elements.size() * sizeof(T));
    return at;
  }
  template <typename T>
  std::vector<T> get(DevicePointer at, std::size_t count) const {
    std::vector<T> elements(count);
    read(at, elements.data(), count * sizeof(T));
    return elements;
  }

  // The step that is posted after `steps` more ends with kDevice and does nothing.
  void fail_after(std::size_t steps);

  // While it is held no step ends.
  void hold();
  void release();

  std::size_t pending() const;        // steps that were posted and have not ended
  std::size_t most_pending() const;   // at one time
  std::size_t posted() const;         // ever
  std::size_t registrations() const;  // of host memory now
  std::size_t registrations_ever() const;

  using DeviceAdapter::place;
  using DeviceAdapter::stage;
  std::string_view name() const override { return "fake"; }
  void stage(DevicePointer from, void* to, std::size_t bytes, DeviceStream stream, DeviceCompletion& done) override;
  void place(const void* from, DevicePointer to, std::size_t bytes, DeviceStream stream, DeviceCompletion& done) override;
  bool poll() override;
  Result<DeviceEvent> record(DeviceStream stream) override;
  Result<void> wait(DeviceStream stream, DeviceEvent event) override;
  Result<bool> passed(DeviceEvent event) override;
  Result<std::uint64_t> register_memory(void* data, std::size_t bytes) override;
  void release_memory(std::uint64_t handle) override;

  // Lets an event pass that record() gave; waits that were asked for, in order.
  void pass(DeviceEvent event);
  std::vector<DeviceEvent> waited_for() const;

 private:
  struct Step {
    bool stages = false;
    DevicePointer device;
    void* host = nullptr;
    std::size_t bytes = 0;
    int polls_left = 0;
    std::optional<Error> error{};
    DeviceCompletion* done = nullptr;
  };

  void post(Step step);
  std::byte* find(DevicePointer at, std::size_t bytes) const;  // null when that is no memory of ours

  mutable std::mutex mutex_;
  std::mt19937 random_;
  std::map<std::uintptr_t, std::vector<std::byte>> memory_;  // by first address
  std::uintptr_t next_address_ = std::uintptr_t{1} << 60;    // beyond what a process can have
  std::vector<Step> steps_;
  std::optional<std::size_t> fail_after_;
  bool held_ = false;
  std::size_t posted_ = 0;
  std::size_t most_pending_ = 0;
  std::set<std::uint64_t> registered_;
  std::uint64_t registrations_ever_ = 0;
  std::uintptr_t next_event_ = 1;
  std::set<DeviceEvent> not_passed_;
  std::vector<DeviceEvent> waited_for_;
};

}  // namespace nexar::test
