// One call of a collective, or several: at once, or one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/call.h"
#include "bench/group_call.h"
#include "bench/memory.h"
#include "nexar/group.h"

namespace nexar::bench {

class Burst {
 public:
  enum class Order : std::uint8_t { kAtOnce, kInSequence };

  // `calls` of them, each in memory of its own, filled.
  Burst(const Group& group, const Call& call, std::size_t calls, Order order, const CallOptions& options, std::uint64_t seed,
        const Allocate& allocate = from_heap);

  // A call in a sequence blocks, and so does a single one; those at once are all started, and then waited for. Throws when one fails.
  void once();

  // By which algorithm a call runs: one more is started, and asked.
  std::string algorithm();

  // Elements that are wrong after once() with fresh input.
  std::uint64_t check();

 private:
  struct Part {
    Part(const Group& group, const Call& asked, const CallOptions& options, std::uint64_t seed, const Allocate& allocate)
        : memory(asked, group.rank(), seed, allocate), call(group, asked, memory, options) {
      memory.fill();
    }
    Memory memory;
    GroupCall call;
    Operation operation{};
  };

  void at_once();

  const bool at_once_;
  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace nexar::bench
