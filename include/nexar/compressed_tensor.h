// A sparse tensor: some elements of a dense one, by index. What top-k sends.
//
//   k: u32 | k x index: u32 | k x value        little-endian, values in the tensor's type
//
// Indices ascend and are below the count. A tensor of 2^32 elements or more does not fit: it is cut into shards, one of these each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "nexar/data_type.h"
#include "nexar/export.h"
#include "nexar/result.h"

namespace nexar {

// A value; owns its indices and values.
class NEXAR_API CompressedTensor {
 public:
  // The most elements of the dense tensor: k must fit its field.
  static constexpr std::uint64_t kCountMax = 0xFFFFFFFF;

  // Of `count` elements of `type`, a float of 16 bits or more; `values` are as many elements as there are indices. kInvalidArgument says
  // what does not fit.
  static Result<CompressedTensor> make(std::uint64_t count, DataType type, std::vector<std::uint32_t> indices,
                                       std::vector<std::byte> values);

  // From the wire form, which `bytes` is exactly. kInvalidArgument says what is wrong; nothing larger than `bytes` is allocated.
  static Result<CompressedTensor> decode(std::span<const std::byte> bytes, std::uint64_t count, DataType type);

  // The wire form.
  std::vector<std::byte> encode() const;

  DataType type() const { return type_; }
  std::uint64_t count() const { return count_; }
  std::uint32_t k() const { return static_cast<std::uint32_t>(indices_.size()); }
  std::span<const std::uint32_t> indices() const { return indices_; }
  std::span<const std::byte> values() const { return values_; }

  // The value at position `i` of indices(); T is the tensor's type.
  template <Element T>
  T value(std::uint32_t i) const {
    T value;
    std::memcpy(&value, values_.data() + i * sizeof(T), sizeof(T));
    return value;
  }

  friend bool operator==(const CompressedTensor&, const CompressedTensor&) = default;

 private:
  CompressedTensor(std::uint64_t count, DataType type, std::vector<std::uint32_t> indices, std::vector<std::byte> values);

  std::uint64_t count_;
  DataType type_;
  std::vector<std::uint32_t> indices_;
  std::vector<std::byte> values_;
};

}  // namespace nexar
