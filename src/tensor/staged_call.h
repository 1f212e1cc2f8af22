// A collective over memory of a device: the group's own where the host reaches the memory, and in pieces where it does not.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "nexar/buffer.h"
#include "nexar/data_type.h"
#include "nexar/device_group.h"
#include "nexar/group.h"
#include "nexar/operation.h"
#include "nexar/result.h"
#include "tensor/slices.h"

namespace nexar::tensor {

// One piece of a call, in host memory. The slices of `in` and `out` follow one another.
struct Piece {
  std::uint64_t first = 0;  // element of each slice
  std::uint64_t count = 0;  // elements of the longest slice; of every slice, where all are equal
  std::vector<std::uint64_t> in_counts;
  std::vector<std::uint64_t> out_counts;
  std::byte* in = nullptr;
  std::byte* out = nullptr;
  CallOptions options;
};

// What a call is. Everything that decides how it is cut (`type`, `longest`, `width`) is equal on all ranks.
struct StagedCall {
  std::string_view name;
  DataType type = DataType::kF32;
  Buffer<Device> send{};
  Slices in{};  // of send
  Buffer<Device> recv{};
  Slices out{};                  // of recv
  std::uint64_t longest = 0;     // elements of the longest slice of any rank
  bool agrees = false;           // `longest` is what this rank knows, and the longest of any rank is found out first
  std::uint64_t width = 1;       // slices of the widest buffer of any rank
  bool in_place = false;         // `in` and `out` of a piece are the same memory
  std::optional<Error> wrong{};  // with the arguments of this rank
  CallOptions options{};
  std::function<Operation(const Piece&)> start{};  // outlives the call that describes it
};

// Arguments that are wrong on this rank alone end it everywhere.
Operation start(StagedCall call, const Group& group, const DeviceGroupOptions& options);

Result<void> finish(Operation operation);

// The options of a call's parts: a deadline is of the whole call, and a part has what is left of it.
class CallClock {
 public:
  explicit CallClock(const CallOptions& options);
  CallOptions options_now() const;
  std::optional<std::chrono::steady_clock::time_point> deadline() const;

 private:
  CallOptions options_;
  std::chrono::steady_clock::time_point began_;
};

// Bytes of the longest piece.
std::uint64_t piece_bytes(const Group& group, const DeviceGroupOptions& options);

// A buffer that says whose memory it is: one that does not is of the node's adapter.
Buffer<Device> with_adapter(const Buffer<Device>& buffer, const Group& group);

// Whether the host reaches all memory of such a buffer, and where.
bool host_reaches(const Buffer<Device>& buffer);
void* host_address(const Buffer<Device>& buffer);

}  // namespace nexar::tensor
