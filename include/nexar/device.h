// Memory that is not plain host memory, and what can be done with it.
//
// An adapter stages bytes from a device to the host, places them back, and reduces them where they are. Every step is *posted*: the call
// returns at once, and the step has ended when its completion says so, which may be late and in any order. Whoever waits calls poll().
//
//   DeviceCompletion staged;
//   adapter->stage(gradient, host, bytes, stream, staged);
//   while (!staged.done()) adapter->poll();
//   if (!staged.result()) return staged.result().error();
//
// An adapter of the application's own derives from DeviceAdapter and implements stage(), place() and name(); the other forms have defaults
// that are built on these.
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "nexar/data_type.h"
#include "nexar/export.h"
#include "nexar/reduce_op.h"
#include "nexar/result.h"

namespace nexar {

// An address in a device's memory. No host pointer becomes one by itself, nor the other way round.
class DevicePointer {
 public:
  constexpr DevicePointer() = default;
  constexpr explicit DevicePointer(std::uintptr_t address) : address_(address) {}

  constexpr std::uintptr_t address() const { return address_; }
  constexpr bool is_null() const { return address_ == 0; }
  constexpr DevicePointer operator+(std::uint64_t bytes) const { return DevicePointer(address_ + bytes); }
  friend constexpr auto operator<=>(const DevicePointer&, const DevicePointer&) = default;

 private:
  std::uintptr_t address_ = 0;
};

struct DeviceRegion {
  DevicePointer at{};
  std::size_t bytes = 0;
};

// A queue of a device's work, and a moment in one. The numbers mean what the adapter says: for CUDA they are a cudaStream_t and a
// cudaEvent_t. Zero is the default stream, and the event that has passed already.
enum class DeviceStream : std::uintptr_t { kDefault = 0 };
enum class DeviceEvent : std::uintptr_t { kPassed = 0 };

// The end of a posted step. It belongs to who posted, stays where it is until the step is done, and may be used again after reset().
class DeviceCompletion {
 public:
  DeviceCompletion() = default;
  DeviceCompletion(const DeviceCompletion&) = delete;
  DeviceCompletion& operator=(const DeviceCompletion&) = delete;

  // Whether the step has ended: from then on nothing of it touches memory. Thread: any.
  bool done() const { return done_.load(std::memory_order_acquire); }

  // How it ended, once it has.
  const Result<void>& result() const { return result_; }

  // For adapters: once for each step. Thread: any.
  void complete(Result<void> result) {
    result_ = std::move(result);
    done_.store(true, std::memory_order_release);
  }

  void reset() {
    result_ = {};
    done_.store(false, std::memory_order_relaxed);
  }

 private:
  std::atomic<bool> done_ = false;
  Result<void> result_;
};

// Thread: any, several at once. An adapter outlives the steps that are posted to it. Its functions run inside the runtime: they may not
// block or call nexar. A step that cannot be done completes with kDevice and a sentence.
class NEXAR_API DeviceAdapter {
 public:
  DeviceAdapter();
  virtual ~DeviceAdapter();
  DeviceAdapter(const DeviceAdapter&) = delete;
  DeviceAdapter& operator=(const DeviceAdapter&) = delete;

  // As it stands in errors: "cpu", "cuda:1".
  virtual std::string_view name() const = 0;

  // Whether the host reads and writes this memory as its own: then nothing is staged, and host_address() is where it lies.
  virtual bool host_addressable() const { return false; }
  virtual void* host_address(DevicePointer) const { return nullptr; }

  // Copies to host memory, and from it. Steps that were posted one after the other may run at once and end in any order, also on one
  // stream; each begins after what the device's own program had put on `stream` before.
  virtual void stage(DevicePointer from, void* to, std::size_t bytes, DeviceStream stream, DeviceCompletion& done) = 0;
  virtual void place(const void* from, DevicePointer to, std::size_t bytes, DeviceStream stream, DeviceCompletion& done) = 0;

  // The same between many regions of a device and one of the host that is as long as all of them. The default posts one step for each;
  // the first error is the result, and it comes when all have ended.
  virtual void stage(std::span<const DeviceRegion> from, void* to, DeviceStream stream, DeviceCompletion& done);
  virtual void place(const void* from, std::span<const DeviceRegion> to, DeviceStream stream, DeviceCompletion& done);

  // out[i] = op(left[i], right[i]), where `out` is `left` or `right`; avg only adds. The default stages both, reduces on the host and
  // places the result.
  virtual void reduce(DevicePointer left, DevicePointer right, DevicePointer out, std::uint64_t count, DataType type, ReduceOp op,
                      DeviceStream stream, DeviceCompletion& done);

  // Lets steps that have ended complete; true when any did. Defaults built on several steps go on from one to the next here, so whoever
  // overrides it calls it too.
  virtual bool poll();

  // Stream events. record() gives a moment that has passed when everything on `stream` before it has been done; wait() lets what comes
  // later on `stream` begin only then. By default every moment has passed, as it has where a stream is always empty.
  virtual Result<DeviceEvent> record(DeviceStream stream);
  virtual Result<void> wait(DeviceStream stream, DeviceEvent event);
  virtual Result<bool> passed(DeviceEvent event);

  // Makes host memory fast to stage to and place from (for CUDA: pins it) until it is released; the number is the adapter's own. By
  // default there is nothing to do. Callers use MemoryRegistration.
  virtual Result<std::uint64_t> register_memory(void* data, std::size_t bytes);
  virtual void release_memory(std::uint64_t handle);

 private:
  struct Chains;
  std::unique_ptr<Chains> chains_;
};

// Host memory that an adapter knows. Move-only; released by release() or with the handle. The memory outlives it.
class NEXAR_API MemoryRegistration {
 public:
  static Result<MemoryRegistration> make(std::shared_ptr<DeviceAdapter> adapter, void* data, std::size_t bytes);

  MemoryRegistration() = default;
  MemoryRegistration(MemoryRegistration&& other) noexcept;
  MemoryRegistration& operator=(MemoryRegistration&& other) noexcept;
  ~MemoryRegistration() { release(); }

  const std::shared_ptr<DeviceAdapter>& adapter() const { return adapter_; }
  void release();

 private:
  MemoryRegistration(std::shared_ptr<DeviceAdapter> adapter, std::uint64_t handle) : adapter_(std::move(adapter)), handle_(handle) {}

  std::shared_ptr<DeviceAdapter> adapter_;
  std::uint64_t handle_ = 0;
};

// Host memory as a device: what a node uses unless told otherwise. Nothing is staged, and every step is done when its call returns.
class NEXAR_API CpuAdapter final : public DeviceAdapter {
 public:
  static DevicePointer pointer(const void* data) { return DevicePointer(reinterpret_cast<std::uintptr_t>(data)); }

  using DeviceAdapter::place;
  using DeviceAdapter::stage;
  std::string_view name() const override { return "cpu"; }
  bool host_addressable() const override { return true; }
  void* host_address(DevicePointer at) const override { return reinterpret_cast<void*>(at.address()); }
  void stage(DevicePointer from, void* to, std::size_t bytes, DeviceStream stream, DeviceCompletion& done) override;
  void place(const void* from, DevicePointer to, std::size_t bytes, DeviceStream stream, DeviceCompletion& done) override;
  void reduce(DevicePointer left, DevicePointer right, DevicePointer out, std::uint64_t count, DataType type, ReduceOp op,
              DeviceStream stream, DeviceCompletion& done) override;
};

}  // namespace nexar
