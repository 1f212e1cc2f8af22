// The table of memory that the ranks of a host lend each other: this rank's buffers and who has mapped them, and the others' buffers as
// they are mapped here.
//
// Whoever passes descriptors between the processes fills it in (collective/host_lending.h). Buffers are numbered by their owner, and a
// number is not used again. Ranks are local ranks: the places of the host's members.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "collective/direct/lending.h"

namespace nexar::collective::direct {

class Windows {
 public:
  // Buffers of one rank at a time. More are not lent, and used like any other memory.
  static constexpr std::size_t kBuffersMax = 256;

  // A buffer of this rank, which is found as long as `owner` lives: afterwards something else may lie at its addresses. False when there
  // are too many, or that number is there already.
  bool add_own(std::uint32_t buffer, base::ByteView memory, std::weak_ptr<const void> owner);
  void set_mapped(std::uint32_t buffer, int local);
  void remove_own(std::uint32_t buffer);

  // A buffer of another, which stays mapped while `mapping` lives.
  bool add_peer(int local, std::uint32_t buffer, base::ByteView memory, std::shared_ptr<const void> mapping);
  // Nobody finds it any more; it is unmapped when nobody reads.
  void remove_peer(int local, std::uint32_t buffer);
  void remove_peer(int local);

  // As in Lending; `readers` have all mapped what is found.
  std::optional<Lent> find(const void* memory, std::uint64_t bytes, std::span<const int> readers) const;
  const std::byte* address(int local, std::uint32_t buffer, std::uint64_t offset, std::uint64_t bytes) const;
  void begin_reading() { reading_.fetch_add(1, std::memory_order_relaxed); }  // the lock of address() orders it
  void end_reading();

  // Own buffers that all of `readers`, sorted, have mapped; and those of others.
  std::size_t own(std::span<const int> readers) const;
  std::size_t peers() const;

 private:
  struct Own {
    std::uint32_t buffer;
    base::ByteView memory;
    std::weak_ptr<const void> owner;
    std::vector<int> mapped_by;  // sorted
  };
  struct Peer {
    int local;
    std::uint32_t buffer;
    base::ByteView memory;
    std::shared_ptr<const void> mapping;
  };

  static bool is_readable(const Own& own, std::span<const int> readers);
  template <typename Matches>
  void retire(Matches matches);

  mutable std::shared_mutex mutex_;
  std::vector<Own> own_;
  std::vector<Peer> peers_;
  std::vector<std::shared_ptr<const void>> retired_;  // that somebody may still read
  std::atomic<bool> has_retired_ = false;
  std::atomic<std::uint32_t> reading_ = 0;
};

// The windows as one group sees them.
class GroupWindows final : public Lending {
 public:
  // `locals` are the members' local ranks in the order of their ranks in the group, of which this one is `self`.
  GroupWindows(Windows& windows, std::vector<int> locals, Rank self);

  std::optional<Lent> find(const void* memory, std::uint64_t bytes) const override { return windows_.find(memory, bytes, readers_); }
  const std::byte* address(Rank rank, std::uint32_t buffer, std::uint64_t offset, std::uint64_t bytes) const override {
    return windows_.address(locals_[static_cast<std::size_t>(rank)], buffer, offset, bytes);
  }
  void begin_reading() const override { windows_.begin_reading(); }
  void end_reading() const override { windows_.end_reading(); }

 private:
  Windows& windows_;
  const std::vector<int> locals_;
  const std::vector<int> readers_;  // all but this one, sorted
};

}  // namespace nexar::collective::direct
