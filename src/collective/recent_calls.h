// The last calls that a group's callers made without the engine, for peers that ask what was called.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "nexar/ids.h"
#include "wire/call.h"

namespace nexar::collective {

// Thread: one writes, whoever has the turn to call; the engine reads.
class RecentCalls {
 public:
  static constexpr std::size_t kKept = 64;

  void put(Sequence sequence, const wire::CallDescriptor& call) {
    Entry& entry = entries_[sequence % kKept];
    entry.sequence.store(0, std::memory_order_relaxed);
    // Released one by one: whoever sees one of the words sees that the number is no longer the old one.
    entry.what.store(packed(call), std::memory_order_release);
    entry.count.store(call.count, std::memory_order_release);
    entry.digest.store(call.digest, std::memory_order_release);
    entry.sequence.store(sequence, std::memory_order_release);
  }

  // Nothing when it is forgotten, or was not called here.
  std::optional<wire::CallDescriptor> find(Sequence sequence) const {
    const Entry& entry = entries_[sequence % kKept];
    if (entry.sequence.load(std::memory_order_acquire) != sequence) return std::nullopt;
    wire::CallDescriptor call = unpacked(entry.what.load(std::memory_order_acquire));
    call.count = entry.count.load(std::memory_order_acquire);
    call.digest = entry.digest.load(std::memory_order_acquire);
    if (entry.sequence.load(std::memory_order_relaxed) != sequence) return std::nullopt;
    return call;
  }

 private:
  struct Entry {
    std::atomic<Sequence> sequence = 0;
    std::atomic<std::uint64_t> what = 0;
    std::atomic<std::uint64_t> count = 0;
    std::atomic<std::uint64_t> digest = 0;
  };
  static constexpr std::uint64_t kNone = 0xff;

  static std::uint64_t packed(const wire::CallDescriptor& call) {
    const std::uint64_t type = call.dtype ? static_cast<std::uint64_t>(*call.dtype) : kNone;
    const std::uint64_t op = call.op ? static_cast<std::uint64_t>(*call.op) : kNone;
    return static_cast<std::uint64_t>(call.operation) | type << 8 | op << 16 | (call.user_op ? std::uint64_t{1} << 24 : 0) |
           std::uint64_t{static_cast<std::uint32_t>(call.root)} << 32;
  }

  static wire::CallDescriptor unpacked(std::uint64_t word) {
    wire::CallDescriptor call;
    call.operation = static_cast<OperationId>(word & 0xff);
    if ((word >> 8 & 0xff) != kNone) call.dtype = static_cast<DataType>(word >> 8 & 0xff);
    if ((word >> 16 & 0xff) != kNone) call.op = static_cast<ReduceOp>(word >> 16 & 0xff);
    call.user_op = (word >> 24 & 1) != 0;
    call.root = static_cast<Rank>(static_cast<std::uint32_t>(word >> 32));
    return call;
  }

  std::array<Entry, kKept> entries_;
};

}  // namespace nexar::collective
