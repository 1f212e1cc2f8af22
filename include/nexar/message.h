// What point-to-point calls speak of: who, under which tag, how much.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nexar/ids.h"

namespace nexar {

// In a receive or probe: whoever sends, or whatever tag it has.
inline constexpr Rank kAnySource = -1;
struct AnyTag {};
inline constexpr AnyTag kAnyTag;

// What a receive got, or a probe found.
struct Status {
  std::uint64_t bytes = 0;
  Rank source = 0;
  Tag tag = 0;

  friend bool operator==(const Status&, const Status&) = default;
};

// A piece of memory to send from, and one to receive into. Messages are sent from and received into lists of them.
struct ConstRegion {
  const void* data = nullptr;
  std::size_t bytes = 0;
};
struct Region {
  void* data = nullptr;
  std::size_t bytes = 0;
};

}  // namespace nexar
