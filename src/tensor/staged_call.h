// A collective over memory that the host does not reach, in pieces.
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
  Slices out{};               // of recv
  std::uint64_t longest = 0;  // elements of the longest slice of any rank
  std::uint64_t width = 1;    // slices of the widest buffer of any rank
  bool in_place = false;      // `in` and `out` of a piece are the same memory
  CallOptions options{};
  std::function<Operation(const Piece&)> start{};
};

// Runs it. Arguments that are wrong on this rank alone end it everywhere.
Result<void> run(const StagedCall& call, const Group& group, const DeviceGroupOptions& options);

// Whether the host reaches all memory of these buffers, and where.
bool host_reaches(const Buffer<Device>& buffer);
void* host_address(const Buffer<Device>& buffer);

// kInvalidArgument when `buffer` is too short for its slices, or nowhere.
Result<void> check_buffer(std::string_view call, const Buffer<Device>& buffer, const Slices& slices, DataType type);

}  // namespace nexar::tensor
