// Text on the wire is valid UTF-8: whoever sends makes it so, whoever receives refuses anything else.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace nexar::wire {

// Whether every byte belongs to a well-formed sequence (no overlong forms, no surrogates, nothing past U+10FFFF).
bool is_utf8(std::string_view text);

// `text` with each byte that is no part of a well-formed sequence replaced by U+FFFD, and, when it is longer than `bytes_max`, cut between
// two characters and ended with an ellipsis. Text that is well-formed and short enough comes back unchanged. bytes_max >= 3.
std::string fit_utf8(std::string_view text, std::size_t bytes_max);

}  // namespace nexar::wire
