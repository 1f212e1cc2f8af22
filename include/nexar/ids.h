// Names for the numbers that identify things. They are plain integers, because algorithms compute with them.
#pragma once

#include <cstdint>

namespace nexar {

// Position of a member in a group: 0-based and contiguous. Negative only while it is not known.
using Rank = std::int32_t;

// Counts the views of a cluster: one more after each join or loss.
using Epoch = std::uint64_t;

// Number of a collective call on its group: one more with every call, also with one that ends in an error.
using Sequence = std::uint64_t;

// What a point-to-point message is matched by, beside group and source.
using Tag = std::uint64_t;

}  // namespace nexar
