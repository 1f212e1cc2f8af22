// The table of memory that ranks of a group lend each other: this rank's buffers that all the others have mapped, and the others' buffers
// as they are mapped here.
//
// Whoever passes descriptors between the processes fills it in: an own buffer when every rank has said that it has mapped it, a peer's when
// it has been mapped. Buffers are numbered by their owner, and a number is not used again.
//
// Thread: any. A call holds addresses from here while it runs: a peer's buffer is removed only when no call runs, or when the peer is lost
// and every call has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "base/bytes.h"
#include "collective/direct/lending.h"

namespace nexar::collective::direct {

class Windows : public Lending {
 public:
  // Buffers of one rank at a time. More are not lent, and used like any other memory.
  static constexpr std::size_t kBuffersMax = 256;

  // False when there are too many, or that number is there already.
  bool add_own(std::uint32_t buffer, base::ByteView memory);
  bool add_peer(Rank rank, std::uint32_t buffer, base::ByteView memory);
  void remove_own(std::uint32_t buffer);
  void remove_peer(Rank rank, std::uint32_t buffer);

  std::optional<Lent> find(const void* memory, std::uint64_t bytes) const override;
  const std::byte* address(Rank rank, std::uint32_t buffer, std::uint64_t offset, std::uint64_t bytes) const override;

 private:
  struct Window {
    Rank rank;
    std::uint32_t buffer;
    base::ByteView memory;
  };

  bool add(std::vector<Window>& windows, const Window& window);
  void remove(std::vector<Window>& windows, Rank rank, std::uint32_t buffer);

  mutable std::shared_mutex mutex_;
  std::vector<Window> own_;
  std::vector<Window> peers_;
};

}  // namespace nexar::collective::direct
