// The largest elements, by index: one sparse tensor for each shard, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "compress/shards.h"
#include "nexar/compressor.h"

namespace nexar::compress {

class TopK final : public Compressor {
 public:
  // 0 < ratio <= 1. `shard_elements` is for tests.
  explicit TopK(double ratio, std::uint64_t shard_elements = kShardElements);

  std::string_view name() const override { return name_; }
  std::uint64_t bytes_max(std::uint64_t count, DataType type) const override;
  std::uint64_t scratch_bytes(std::uint64_t, DataType) const override { return 0; }
  Result<std::size_t> compress(base::ByteView tensor, DataType type, const CompressionContext& context, base::ByteSpan out) const override;
  Result<void> add(base::ByteView compressed, DataType type, const CompressionContext& context, SumView sum) const override;
  Result<void> subtract(base::ByteView compressed, DataType type, const CompressionContext& context,
                        base::ByteSpan residual) const override;

 private:
  // All shards of `compressed`, checked: each has exactly the k that the ratio gives, and nothing follows the last.
  Result<void> check(base::ByteView compressed, std::uint64_t count, DataType type) const;

  double ratio_;
  std::uint64_t shard_elements_;
  std::string name_;
};

}  // namespace nexar::compress
