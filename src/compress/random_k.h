// Elements at random positions that every rank draws alike: the values of each shard, one after the other, and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "compress/shards.h"
#include "nexar/compressor.h"

namespace nexar::compress {

class RandomK final : public Compressor {
 public:
  // 0 < ratio <= 1. `shard_elements` is for tests.
  explicit RandomK(double ratio, std::uint64_t shard_elements = kShardElements);

  std::string_view name() const override { return name_; }
  bool sends_elements() const override { return true; }
  std::uint64_t bytes_max(std::uint64_t count, DataType type) const override;
  std::uint64_t scratch_bytes(std::uint64_t count, DataType type) const override;
  Result<std::size_t> compress(base::ByteView tensor, DataType type, const CompressionContext& context, base::ByteSpan out) const override;
  Result<void> add(base::ByteView compressed, DataType type, const CompressionContext& context, SumView sum) const override;
  Result<void> subtract(base::ByteView compressed, DataType type, const CompressionContext& context,
                        base::ByteSpan residual) const override;

 private:
  // f(position in the tensor) for each position of the call, ascending.
  template <typename F>
  void for_each_position(std::uint64_t count, const CompressionContext& context, F&& f) const;

  double ratio_;
  std::uint64_t shard_elements_;
  std::string name_;
};

}  // namespace nexar::compress
