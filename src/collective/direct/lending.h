// Memory of one process that the others of its host read in place.
//
// A SharedBuffer is such memory: its descriptor has been given to the peers, who have mapped it read-only. What a call lends is named by
// the buffer's number and an offset, and every reader finds its own address for that here.
//
// Thread: any; implementations are read by whoever runs a call while the engine adds to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "collective/direct/layout.h"
#include "nexar/ids.h"

namespace nexar::collective::direct {

class Lending {
 public:
  virtual ~Lending() = default;

  // Where [memory, memory + bytes) of this process lies in a buffer that every rank of the group has mapped; nothing when it does not lie
  // in one, or not whole.
  virtual std::optional<Lent> find(const void* memory, std::uint64_t bytes) const = 0;

  // Where `bytes` at that place of `rank`'s buffer are in this process; null when there is no such buffer or it is shorter. The numbers
  // come from the peer: anything may be asked. Asked between begin_reading() and end_reading(); until then the memory stays where it is.
  virtual const std::byte* address(Rank rank, std::uint32_t buffer, std::uint64_t offset, std::uint64_t bytes) const = 0;

  // Told of what a call lends instead of copying it.
  virtual void on_lent(std::uint64_t bytes) const { static_cast<void>(bytes); }

  virtual void begin_reading() const = 0;
  virtual void end_reading() const = 0;
};

}  // namespace nexar::collective::direct
