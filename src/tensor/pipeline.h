// Stages, runs and places the pieces of one call, several at a time.
//
//   piece 0   stage | run   | place
//   piece 1         | stage | run   | place
//   piece 2                 | stage | run   | place
//
// Steps of a device are posted and end in any order; operations begin in the order of pieces, on every rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "nexar/buffer.h"
#include "nexar/buffer_pool.h"
#include "nexar/device.h"
#include "nexar/group.h"
#include "nexar/operation.h"
#include "nexar/result.h"

namespace nexar::tensor {

// What a pipeline is asked to do. `in` and `out` of a slot are host memory; where a call is in place they are the same.
struct Pieces {
  std::string_view name;    // of the call
  std::uint64_t count = 1;  // at least one: also a call about nothing takes its place in the order of calls
  std::uint64_t in_bytes = 0;
  std::uint64_t out_bytes = 0;
  bool in_place = false;
  std::function<std::vector<DeviceRegion>(std::uint64_t piece)> in;
  std::function<std::vector<DeviceRegion>(std::uint64_t piece)> out;
  std::function<Operation(std::uint64_t piece, std::byte* in, std::byte* out)> start;
};

// Owned by a call, on its stack. Thread: the caller's.
class Pipeline {
 public:
  Pipeline(const Group& group, const Buffer<Device>& send, const Buffer<Device>& recv, Pieces pieces);

  // Runs all pieces through at most `slots` slots. After the first error nothing more is staged, what is under way ends, and the pieces
  // that are left are declined, so that all ranks are at the same place in the order of calls. kOverloaded without memory for one slot.
  Result<void> run(std::size_t slots);

 private:
  struct Slot {
    BufferPool::Lease memory;
    std::byte* in = nullptr;
    std::byte* out = nullptr;
    std::vector<DeviceRegion> in_regions;
    std::vector<DeviceRegion> out_regions;
    DeviceCompletion staged;
    DeviceCompletion placed;
    Operation operation;
  };

  Result<void> take_slots(std::size_t wanted);
  Slot& slot(std::uint64_t piece) { return *slots_[piece % slots_.size()]; }
  bool step();
  bool stage_next();
  bool start_next();
  bool place_next();
  bool release_next();
  void wait();
  void note(Result<void> result);

  Group group_;
  Buffer<Device> send_;
  Buffer<Device> recv_;
  Pieces pieces_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::optional<Error> error_;

  // Each piece passes these in order; a count is of the pieces that have.
  std::uint64_t staging_ = 0;
  std::uint64_t started_ = 0;
  std::uint64_t placing_ = 0;
  std::uint64_t released_ = 0;
};

}  // namespace nexar::tensor
