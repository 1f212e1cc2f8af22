// A call that nexar makes in given memory, as often as it is asked to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bench/call.h"
#include "bench/memory.h"
#include "nexar/group.h"

namespace nexar::bench {

class GroupCall {
 public:
  // `memory` outlives it. `call` has a count for each rank of the group.
  GroupCall(Group group, const Call& call, Memory& memory, CallOptions options = {});

  // Blocking, and without waiting.
  Result<void> once();
  Operation start() const;

  // Takes what a call of start() left outside of the memory, before count_wrong().
  void take(Operation& operation);

  // Elements that are not what the last call must have left.
  std::uint64_t count_wrong() const;

 private:
  std::span<const std::byte> bytes() const { return {memory_.input(), memory_.input_bytes()}; }
  std::span<const std::uint64_t> counts_at_root() const;
  void keep(const std::vector<std::vector<std::byte>>& strings);

  Group group_;
  Call call_;
  Memory& memory_;
  CallOptions options_;
  std::uint64_t own_;  // elements of this rank's part
  bool has_strings_;   // results come as byte strings of their own
  std::vector<std::uint64_t> send_counts_;
  std::vector<std::uint64_t> recv_counts_;
  std::vector<std::byte> result_;  // those strings, one after the other
};

}  // namespace nexar::bench
