// A group that is being made: this rank has said whether it has shared memory for it, and waits for what the others say.
#pragma once

#include <cstdint>
#include <functional>

#include "base/bytes.h"
#include "collective/call.h"
#include "nexar/result.h"
#include "runtime/group_record.h"

namespace nexar::runtime {

// Thread: engine. Owned by the node until `done` is called.
struct MemoryOffer {
  GroupRecord& group;
  std::function<void(Result<void>)> done;
  base::ByteSpan block{};  // this rank has got
  std::uint8_t mine = 0;   // whether it has
  std::uint8_t all = 0;    // and everybody else
  collective::Call call{};
};

}  // namespace nexar::runtime
