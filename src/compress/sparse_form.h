// The bytes of a sparse tensor, `k | k x index | k x value`, read and written in place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "nexar/data_type.h"
#include "nexar/result.h"

namespace nexar::compress {

inline constexpr std::size_t kIndexBytes = sizeof(std::uint32_t);

constexpr std::uint64_t sparse_bytes(std::uint64_t k, std::size_t element_bytes) { return kIndexBytes + k * (kIndexBytes + element_bytes); }

// A view of bytes that are a sparse tensor: indices ascend and are below the count, and the length is right.
struct SparseForm {
  std::uint32_t k = 0;
  const std::byte* indices = nullptr;  // any alignment
  const std::byte* values = nullptr;

  std::uint32_t index(std::size_t i) const { return base::load_le<std::uint32_t>(indices + i * kIndexBytes); }
};

// Reads the sparse tensor of `count` elements at the front of `bytes` and checks all of it but what its values are. kInvalidArgument says
// what is wrong. What follows it is the caller's to look at; sparse_bytes(k) of them belong to it.
Result<SparseForm> parse_sparse(base::ByteView bytes, std::uint64_t count, DataType type);

}  // namespace nexar::compress
