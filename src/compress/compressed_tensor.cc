#include "nexar/compressed_tensor.h"

#include <utility>

#include <fmt/format.h>

#include "compress/elements.h"
#include "compress/sparse_form.h"

namespace nexar {
namespace {

Result<void> check_shape(std::uint64_t count, DataType type) {
  if (!compress::is_compressible(type))
    return Error(ErrorCode::kInvalidArgument, fmt::format("a sparse tensor holds f32, f64, f16 or bf16, not {}", to_string(type)));
  if (count > CompressedTensor::kCountMax)
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("a sparse tensor has at most {} elements, not {}; a longer one is cut into shards",
                             CompressedTensor::kCountMax, count));
  return {};
}

}  // namespace

CompressedTensor::CompressedTensor(std::uint64_t count, DataType type, std::vector<std::uint32_t> indices, std::vector<std::byte> values)
    : count_(count), type_(type), indices_(std::move(indices)), values_(std::move(values)) {}

Result<CompressedTensor> CompressedTensor::make(std::uint64_t count, DataType type, std::vector<std::uint32_t> indices,
                                                std::vector<std::byte> values) {
  if (auto checked = check_shape(count, type); !checked) return std::move(checked).error();
  if (indices.size() > count)
    return Error(ErrorCode::kInvalidArgument, fmt::format("a sparse tensor of {} elements is given {}", count, indices.size()));
  if (values.size() != indices.size() * size_of(type))
    return Error(ErrorCode::kInvalidArgument, fmt::format("a sparse tensor with {} indices of {} is given {} bytes of values",
                                                          indices.size(), to_string(type), values.size()));
  CompressedTensor tensor(count, type, std::move(indices), std::move(values));
  // The rule for indices stands in one place, where it must hold anyway.
  if (auto parsed = compress::parse_sparse(tensor.encode(), count, type); !parsed) return std::move(parsed).error();
  return tensor;
}

Result<CompressedTensor> CompressedTensor::decode(std::span<const std::byte> bytes, std::uint64_t count, DataType type) {
  if (auto checked = check_shape(count, type); !checked) return std::move(checked).error();
  const Result<compress::SparseForm> form = compress::parse_sparse(bytes, count, type);
  if (!form) return form.error();
  if (const std::uint64_t used = compress::sparse_bytes(form->k, size_of(type)); used != bytes.size())
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("a sparse tensor with k = {} takes {} bytes and has {}", form->k, used, bytes.size()));
  std::vector<std::uint32_t> indices(form->k);
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = form->index(i);
  return CompressedTensor(count, type, std::move(indices), std::vector<std::byte>(form->values, bytes.data() + bytes.size()));
}

std::vector<std::byte> CompressedTensor::encode() const {
  std::vector<std::byte> bytes(compress::kIndexBytes * (1 + indices_.size()) + values_.size());
  base::store_le(bytes.data(), k());
  std::byte* at = bytes.data() + compress::kIndexBytes;
  for (const std::uint32_t index : indices_) {
    base::store_le(at, index);
    at += compress::kIndexBytes;
  }
  if (!values_.empty()) std::memcpy(at, values_.data(), values_.size());
  return bytes;
}

}  // namespace nexar
