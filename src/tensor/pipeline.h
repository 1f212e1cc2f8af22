// Stages, runs and places the pieces of one call, several at a time.
//
//   piece 0   stage | run   | place
//   piece 1         | stage | run   | place
//   piece 2                 | stage | run   | place
//
// Steps of a device are posted and end in any order; operations begin in the order of pieces, on every rank.
#pragma once

#include <chrono>
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
#include "runtime/program.h"

namespace nexar::tensor {

// What a pipeline is asked to do. `in` and `out` of a slot are host memory; where a call is in place they are the same. The functions run
// on the engine.
struct Pieces {
  std::string_view name;    // of the call
  std::uint64_t count = 1;  // at least one: also a call about nothing takes its place in the order of calls
  std::uint64_t in_bytes = 0;
  std::uint64_t out_bytes = 0;
  bool in_place = false;
  std::function<std::vector<DeviceRegion>(std::uint64_t piece)> in;
  std::function<std::vector<DeviceRegion>(std::uint64_t piece)> out;
  std::function<Operation(std::uint64_t piece, std::byte* in, std::byte* out)> start;

  // When it ends with kTimeout, if no piece is between ranks then, which has a deadline of its own.
  std::optional<std::chrono::steady_clock::time_point> deadline{};

  // Where no rank knows the count alone: a call that finds it out, before all others, and what it has found then. It has memory of its own.
  std::function<Operation()> agree{};
  std::function<std::uint64_t()> agreed{};
};

// A program of the runtime: made by the caller's thread, run by the engine. Its memory is its own from the beginning.
class Pipeline final : public runtime::Program {
 public:
  // Takes at most `slots` slots. With `wrong`, what is wrong with the arguments, or without memory for one slot, all its calls are
  // declined.
  Pipeline(const Group& group, const Buffer<Device>& send, const Buffer<Device>& recv, Pieces pieces, std::size_t slots,
           std::optional<Error> wrong = std::nullopt);

  std::string_view name() const override { return pieces_.name; }
  bool step(bool first) override;
  bool is_polled() const override;
  bool has_begun() const override { return !pieces_.agree && begun_ == pieces_.count; }
  const std::optional<Result<Status>>& result() const override { return result_; }
  void cancel(const Error& reason) override;

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
  const Slot& slot(std::uint64_t piece) const { return *slots_[piece % slots_.size()]; }
  bool waits_for_device() const;
  bool watches_clock() const { return pieces_.deadline && !error_ && !result_ && placing_ == started_; }
  bool poll_devices();
  bool check_deadline();
  bool agree(bool first);
  bool stage_next();
  bool start_next(bool first);
  bool place_next();
  bool release_next();
  bool decline_rest();
  bool is_under_way() const;
  void end();
  void note(Result<void> result);

  Group group_;
  Buffer<Device> send_;
  Buffer<Device> recv_;
  Pieces pieces_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::optional<Operation> agreement_;
  std::optional<Error> error_;  // from here on nothing new is staged, started or placed
  std::optional<Result<Status>> result_;

  // Each piece passes these in order; a count is of the pieces that have.
  std::uint64_t staging_ = 0;
  std::uint64_t started_ = 0;
  std::uint64_t placing_ = 0;
  std::uint64_t released_ = 0;

  std::uint64_t begun_ = 0;  // pieces whose call has begun: those started, and after an error those declined
};

}  // namespace nexar::tensor
