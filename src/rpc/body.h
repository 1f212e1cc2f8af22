// Arguments or a result that are too long for a frame, while they travel as a transfer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "mesh/transfers.h"
#include "nexar/message.h"

namespace nexar::rpc {

// Stays where it is while it travels: the transfer has its address.
struct Body final : mesh::TransferSink {
  std::uint64_t transfer = 0;    // 0 when none is under way
  ConstRegion region{};          // of one that is sent
  std::vector<std::byte> bytes;  // of one that arrives

  void take(std::uint64_t offset, base::ByteView part) override { std::memcpy(bytes.data() + offset, part.data(), part.size()); }
  std::size_t place(std::uint64_t offset, std::size_t size, std::span<base::ByteSpan> regions) override {
    regions[0] = base::ByteSpan(bytes).subspan(static_cast<std::size_t>(offset), size);
    return 1;
  }
};

}  // namespace nexar::rpc
