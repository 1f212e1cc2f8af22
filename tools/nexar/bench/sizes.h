// Sizes as they are written on command lines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nexar::bench {

// `8`, `64K` and `1MiB` are sizes; `8-64M` is a range in which each is twice the one before, and `8-64M*4` one of other steps. Throws,
// naming the text, for anything else.
std::vector<std::uint64_t> parse_sizes(const std::vector<std::string>& texts);

}  // namespace nexar::bench
