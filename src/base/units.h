// Durations and sizes as people write them: `500ms`, `10min`, `64KiB`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace nexar::base {

// A whole number and one of ns, us, ms, s, min, h; nothing when the text is anything else or does not fit.
std::optional<Duration> parse_duration(std::string_view text);

// A whole number, alone or with one of B, KiB, MiB, GiB, TiB (or K, M, G, T, which mean the same).
std::optional<std::uint64_t> parse_size(std::string_view text);

// A whole number in decimal, without sign or spaces.
std::optional<std::uint64_t> parse_number(std::string_view text);

// In the largest unit that divides it, so that parsing gives the same value again.
std::string format_duration(Duration duration);
std::string format_size(std::uint64_t bytes);

}  // namespace nexar::base
