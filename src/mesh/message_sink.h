// Where the bytes of a large message go: into the memory of the receive that it matched.
//
// Thread: engine. Owned by a Peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "mesh/message.h"
#include "mesh/regions.h"
#include "mesh/transfers.h"

namespace nexar::mesh {

class MessageSink final : public TransferSink {
 public:
  // The receive stays where it is, and has room.
  MessageSink(Receive& receive, std::uint64_t bytes)
      : receive_(&receive), to_(std::span<const Region>(receive.regions)), past_cache_(bytes >= kPastCacheBytes) {}

  Receive& receive() const { return *receive_; }

  void take(std::uint64_t offset, base::ByteView bytes) override {
    RegionCursor<Region> to = to_.at(offset);
    write(to, bytes, past_cache_);
  }

  std::size_t place(std::uint64_t offset, std::size_t bytes, std::span<base::ByteSpan> regions) override {
    RegionCursor<Region> to = to_.at(offset);
    for (std::size_t count = 0; count < regions.size(); ++count) {
      regions[count] = to.piece(bytes);
      to.advance(regions[count].size());
      bytes -= regions[count].size();
      if (bytes == 0) return count + 1;
    }
    return 0;
  }

 private:
  // A message of this size does not stay in the second-level cache of any core until its reader comes.
  static constexpr std::uint64_t kPastCacheBytes = 4u << 20;

  Receive* receive_;
  RegionIndex<Region> to_;
  bool past_cache_;
};

}  // namespace nexar::mesh
