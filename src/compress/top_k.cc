#include "compress/top_k.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "compress/elements.h"
#include "compress/refusals.h"
#include "compress/selection.h"
#include "compress/sparse_form.h"
#include "reduce/float_environment.h"

namespace nexar::compress {
namespace {

// Writes the sparse tensor of the elements that the cut selects to `out`, and returns its end.
template <typename Bits>
std::byte* write_selected(const SelectKernels& kernels, const std::byte* elements, std::size_t count, std::uint32_t k, std::byte* out) {
  base::store_le(out, k);
  std::byte* indices = out + kIndexBytes;
  std::byte* values = indices + std::size_t{k} * kIndexBytes;
  if (k == 0) return values;
  for_each_selected(kernels, elements, count, find_cut(kernels, elements, count, k), [&](std::size_t i) {
    base::store_le(indices, static_cast<std::uint32_t>(i));
    indices += kIndexBytes;
    std::memcpy(values, elements + i * sizeof(Bits), sizeof(Bits));
    values += sizeof(Bits);
  });
  return values;
}

// f(form, first) for each shard of bytes that were checked before.
template <typename F>
void for_each_form(base::ByteView compressed, std::uint64_t count, DataType type, double ratio, std::uint64_t shard_elements, F&& f) {
  const std::byte* at = compressed.data();
  for_each_shard(count, shard_elements, [&](std::uint64_t, std::uint64_t first, std::uint64_t n) {
    const std::uint32_t k = kept(n, ratio);
    f(SparseForm{.k = k, .indices = at + kIndexBytes, .values = at + kIndexBytes * (std::size_t{k} + 1)}, first);
    at += sparse_bytes(k, size_of(type));
    return true;
  });
}

}  // namespace

TopK::TopK(double ratio, std::uint64_t shard_elements)
    : ratio_(ratio), shard_elements_(shard_elements), name_(fmt::format("top_k({})", ratio)) {}

std::uint64_t TopK::bytes_max(std::uint64_t count, DataType type) const {
  const std::uint64_t whole = count / shard_elements_;
  const std::uint64_t rest = count % shard_elements_;
  const std::uint64_t of_rest = rest > 0 || whole == 0 ? sparse_bytes(kept(rest, ratio_), size_of(type)) : 0;
  return saturating(whole, sparse_bytes(kept(shard_elements_, ratio_), size_of(type)), of_rest);
}

Result<std::size_t> TopK::compress(base::ByteView tensor, DataType type, const CompressionContext&, base::ByteSpan out) const {
  if (auto checked = check_room(*this, tensor, type, out); !checked) return std::move(checked).error();
  const SelectKernels& kernels = select_kernels(type);
  std::byte* end = out.data();
  for_each_shard(tensor.size() / size_of(type), shard_elements_, [&](std::uint64_t, std::uint64_t first, std::uint64_t n) {
    const std::byte* elements = tensor.data() + first * size_of(type);
    const std::uint32_t k = kept(n, ratio_);
    end = size_of(type) == 2   ? write_selected<std::uint16_t>(kernels, elements, n, k, end)
          : size_of(type) == 4 ? write_selected<std::uint32_t>(kernels, elements, n, k, end)
                               : write_selected<std::uint64_t>(kernels, elements, n, k, end);
    return true;
  });
  return static_cast<std::size_t>(end - out.data());
}

Result<void> TopK::check(base::ByteView compressed, std::uint64_t count, DataType type) const {
  Result<void> outcome;
  for_each_shard(count, shard_elements_, [&](std::uint64_t number, std::uint64_t, std::uint64_t n) {
    const Result<SparseForm> form = parse_sparse(compressed, n, type);
    if (!form) {
      outcome = form.error();
    } else if (form->k != kept(n, ratio_)) {
      outcome = Error(ErrorCode::kInvalidArgument,
                      fmt::format("{} keeps {} of {} elements, but shard {} has {}", name_, kept(n, ratio_), n, number, form->k));
    } else {
      compressed = compressed.subspan(sparse_bytes(form->k, size_of(type)));
    }
    return outcome.has_value();
  });
  if (outcome && !compressed.empty())
    outcome = Error(ErrorCode::kInvalidArgument, fmt::format("{} bytes follow the last shard of {}", compressed.size(), name_));
  return outcome;
}

Result<void> TopK::add(base::ByteView compressed, DataType type, const CompressionContext&, SumView sum) const {
  if (auto checked = check_sum(*this, type, sum); !checked) return checked;
  if (auto checked = check(compressed, size_of_sum(sum), type); !checked) return checked;
  const reduce::FloatEnvironment standard;
  with_type(type, [&]<typename T>(T) {
    Number<T>* numbers = numbers_of<Number<T>>(sum).data();
    for_each_form(compressed, size_of_sum(sum), type, ratio_, shard_elements_, [&](const SparseForm& form, std::uint64_t first) {
      Number<T> values[kChunk];
      for_each_part(form.k, kChunk, [&](std::uint64_t at, std::size_t n) {
        load<T>(form.values + at * sizeof(T), values, n);
        for (std::size_t i = 0; i < n; ++i) numbers[first + form.index(at + i)] += values[i];
      });
    });
  });
  return {};
}

Result<void> TopK::subtract(base::ByteView compressed, DataType type, const CompressionContext&, base::ByteSpan residual) const {
  if (auto checked = check_tensor(*this, residual, type); !checked) return checked;
  const std::uint64_t count = residual.size() / size_of(type);
  if (auto checked = check(compressed, count, type); !checked) return checked;
  const reduce::FloatEnvironment standard;
  with_type(type, [&]<typename T>(T) {
    for_each_form(compressed, count, type, ratio_, shard_elements_, [&](const SparseForm& form, std::uint64_t first) {
      for (std::size_t i = 0; i < form.k; ++i)
        subtract_one<T>(residual.data() + (first + form.index(i)) * sizeof(T), form.values + i * sizeof(T));
    });
  });
  return {};
}

}  // namespace nexar::compress

namespace nexar {

Result<std::shared_ptr<const Compressor>> Compressor::top_k(double ratio) {
  if (auto checked = compress::check_ratio("top_k", ratio); !checked) return std::move(checked).error();
  return std::shared_ptr<const Compressor>(std::make_shared<compress::TopK>(ratio));
}

}  // namespace nexar
