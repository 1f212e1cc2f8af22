// Reading the memory of another process of the same user.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <sys/types.h>

#include "base/bytes.h"

namespace nexar::io {

// The memory of one process, if the kernel lets us read it. A word that only that process can have told us, at an address of its own, is
// read along with everything else: it proves that whoever has the number of the process now is still the one we mean.
//
// Thread: one at a time.
class ProcessMemory {
 public:
  struct Proof {
    std::uint64_t address = 0;
    std::uint64_t word = 0;
  };

  // Regions that one read may fill.
  static constexpr std::size_t kRegionsMax = 16;

  ProcessMemory(pid_t process, const Proof& proof) : process_(process), proof_(proof) {}

  // Fills `into`, at most kRegionsMax regions, from `address` on. False when the kernel does not permit it, the memory is not there (any
  // more), or the process is another one; the regions then hold anything.
  bool read(std::uint64_t address, std::span<const base::ByteSpan> into) const;

  // Whether reading works at all: only the word is read.
  bool works() const { return read(0, {}); }

 private:
  pid_t process_;
  Proof proof_;
};

}  // namespace nexar::io
