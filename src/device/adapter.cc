#include <new>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "device/chains.h"
#include "nexar/device.h"
#include "reduce/reducer.h"

namespace nexar {
namespace {

using device::Chain;
using device::Steps;

// Stages both operands to the host, reduces them there, places the result.
class ReduceChain final : public Chain {
 public:
  ReduceChain(DeviceAdapter& adapter, reduce::Reducer reducer, std::size_t count, std::size_t bytes, std::unique_ptr<std::byte[]> memory,
              DevicePointer out, DeviceStream stream, DeviceCompletion& done)
      : adapter_(adapter),
        reducer_(std::move(reducer)),
        count_(count),
        bytes_(bytes),
        memory_(std::move(memory)),
        out_(out),
        stream_(stream),
        done_(done) {}

  void begin(DevicePointer left, DevicePointer right) {
    adapter_.stage(left, memory_.get(), bytes_, stream_, staged_[0]);
    adapter_.stage(right, memory_.get() + bytes_, bytes_, stream_, staged_[1]);
  }

  bool advance() override {
    if (!placing_) {
      if (!staged_.done()) return false;
      Result<void> so_far = staged_.result();
      if (so_far) so_far = reducer_.combine(memory_.get(), memory_.get() + bytes_, memory_.get(), count_);
      if (!so_far) return done_.complete(std::move(so_far)), true;
      placing_ = true;
      adapter_.place(memory_.get(), out_, bytes_, stream_, placed_);
    }
    if (!placed_.done()) return false;
    done_.complete(placed_.result());
    return true;
  }

 private:
  DeviceAdapter& adapter_;
  reduce::Reducer reducer_;
  std::size_t count_;
  std::size_t bytes_;
  std::unique_ptr<std::byte[]> memory_;
  DevicePointer out_;
  DeviceStream stream_;
  DeviceCompletion& done_;
  Steps staged_{2};
  DeviceCompletion placed_;
  bool placing_ = false;
};

}  // namespace

struct DeviceAdapter::Chains {
  device::ChainList list;
};

DeviceAdapter::DeviceAdapter() : chains_(std::make_unique<Chains>()) {}
DeviceAdapter::~DeviceAdapter() = default;

void DeviceAdapter::stage(std::span<const DeviceRegion> from, void* to, DeviceStream stream, DeviceCompletion& done) {
  auto steps = std::make_unique<Steps>(from.size());
  std::byte* at = static_cast<std::byte*>(to);
  for (std::size_t i = 0; i < from.size(); at += from[i].bytes, ++i) stage(from[i].at, at, from[i].bytes, stream, (*steps)[i]);
  chains_->list.add(device::gather_chain(std::move(steps), done));
}

void DeviceAdapter::place(const void* from, std::span<const DeviceRegion> to, DeviceStream stream, DeviceCompletion& done) {
  auto steps = std::make_unique<Steps>(to.size());
  const std::byte* at = static_cast<const std::byte*>(from);
  for (std::size_t i = 0; i < to.size(); at += to[i].bytes, ++i) place(at, to[i].at, to[i].bytes, stream, (*steps)[i]);
  chains_->list.add(device::gather_chain(std::move(steps), done));
}

void DeviceAdapter::reduce(DevicePointer left, DevicePointer right, DevicePointer out, std::uint64_t count, DataType type, ReduceOp op,
                           DeviceStream stream, DeviceCompletion& done) {
  Result<reduce::Reducer> reducer = reduce::Reducer::make(type, op);
  if (!reducer) return done.complete(std::move(reducer).error());
  const std::optional<std::uint64_t> bytes = base::checked_multiply<std::uint64_t>(count, 2 * size_of(type));
  std::unique_ptr<std::byte[]> memory(bytes ? new (std::nothrow) std::byte[*bytes] : nullptr);
  if (memory == nullptr)
    return done.complete(Error(ErrorCode::kOverloaded,
                               fmt::format("no memory to reduce {} elements of {} of {} on the host", count, to_string(type), name())));
  auto chain = std::make_unique<ReduceChain>(*this, *std::move(reducer), static_cast<std::size_t>(count),
                                             static_cast<std::size_t>(*bytes / 2), std::move(memory), out, stream, done);
  chain->begin(left, right);
  chains_->list.add(std::move(chain));
}

bool DeviceAdapter::poll() { return chains_->list.advance(); }

Result<DeviceEvent> DeviceAdapter::record(DeviceStream) { return DeviceEvent::kPassed; }
Result<void> DeviceAdapter::wait(DeviceStream, DeviceEvent) { return {}; }
Result<bool> DeviceAdapter::passed(DeviceEvent) { return true; }

Result<std::uint64_t> DeviceAdapter::register_memory(void*, std::size_t) { return std::uint64_t{0}; }
void DeviceAdapter::release_memory(std::uint64_t) {}

Result<MemoryRegistration> MemoryRegistration::make(std::shared_ptr<DeviceAdapter> adapter, void* data, std::size_t bytes) {
  Result<std::uint64_t> handle = adapter->register_memory(data, bytes);
  if (!handle) return std::move(handle).error();
  return MemoryRegistration(std::move(adapter), *handle);
}

MemoryRegistration::MemoryRegistration(MemoryRegistration&& other) noexcept
    : adapter_(std::exchange(other.adapter_, nullptr)), handle_(other.handle_) {}

MemoryRegistration& MemoryRegistration::operator=(MemoryRegistration&& other) noexcept {
  std::swap(adapter_, other.adapter_);
  std::swap(handle_, other.handle_);
  return *this;
}

void MemoryRegistration::release() {
  if (adapter_ != nullptr) std::exchange(adapter_, nullptr)->release_memory(handle_);
}

}  // namespace nexar
