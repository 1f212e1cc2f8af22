// No compression: the tensor's own elements.
#include <cstring>

#include "base/bytes.h"
#include "compress/elements.h"
#include "compress/refusals.h"
#include "nexar/compressor.h"
#include "reduce/float_environment.h"

namespace nexar::compress {
namespace {

class Dense final : public Compressor {
 public:
  std::string_view name() const override { return "none"; }
  bool sends_elements() const override { return true; }
  std::uint64_t bytes_max(std::uint64_t count, DataType type) const override { return saturating(count, size_of(type)); }
  std::uint64_t scratch_bytes(std::uint64_t, DataType) const override { return 0; }

  Result<std::size_t> compress(base::ByteView tensor, DataType type, const CompressionContext&, base::ByteSpan out) const override {
    if (auto checked = check_room(*this, tensor, type, out); !checked) return std::move(checked).error();
    if (!tensor.empty()) std::memcpy(out.data(), tensor.data(), tensor.size());
    return tensor.size();
  }

  Result<void> add(base::ByteView compressed, DataType type, const CompressionContext&, SumView sum) const override {
    if (auto checked = check_sum(*this, type, sum); !checked) return checked;
    const std::uint64_t count = size_of_sum(sum);
    if (auto checked = check_length(*this, compressed, count, bytes_max(count, type)); !checked) return checked;
    const reduce::FloatEnvironment standard;
    with_type(type, [&]<typename T>(T) {
      Number<T>* numbers = numbers_of<Number<T>>(sum).data();
      Number<T> values[kChunk];
      for_each_part(count, kChunk, [&](std::uint64_t first, std::size_t n) {
        load<T>(compressed.data() + first * sizeof(T), values, n);
        for (std::size_t i = 0; i < n; ++i) numbers[first + i] += values[i];
      });
    });
    return {};
  }

  Result<void> subtract(base::ByteView compressed, DataType type, const CompressionContext&, base::ByteSpan residual) const override {
    if (auto checked = check_tensor(*this, residual, type); !checked) return checked;
    const std::uint64_t count = residual.size() / size_of(type);
    if (auto checked = check_length(*this, compressed, count, bytes_max(count, type)); !checked) return checked;
    const reduce::FloatEnvironment standard;
    with_type(type, [&]<typename T>(T) {
      Number<T> values[kChunk];
      for_each_part(count, kChunk, [&](std::uint64_t first, std::size_t n) {
        load<T>(compressed.data() + first * sizeof(T), values, n);
        subtract_values<T, kChunk>(residual.data() + first * sizeof(T), values, n);
      });
    });
    return {};
  }
};

}  // namespace
}  // namespace nexar::compress

namespace nexar {

std::shared_ptr<const Compressor> Compressor::none() { return std::make_shared<compress::Dense>(); }

}  // namespace nexar
