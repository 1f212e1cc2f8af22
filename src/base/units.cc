#include "base/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "base/bytes.h"

namespace nexar::base {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::array kDurationUnits = {
    Unit{"ns", 1},
    Unit{"us", 1'000},
    Unit{"ms", 1'000'000},
    Unit{"s", 1'000'000'000},
    Unit{"min", 60'000'000'000},
    Unit{"h", 3'600'000'000'000},
};

// The short spellings come after the long ones of the same size: printing prefers what comes first.
constexpr std::array kSizeUnits = {
    Unit{"B", 1},
    Unit{"", 1},
    Unit{"KiB", 1ull << 10},
    Unit{"K", 1ull << 10},
    Unit{"MiB", 1ull << 20},
    Unit{"M", 1ull << 20},
    Unit{"GiB", 1ull << 30},
    Unit{"G", 1ull << 30},
    Unit{"TiB", 1ull << 40},
    Unit{"T", 1ull << 40},
};

template <std::size_t n>
std::optional<std::uint64_t> parse(std::string_view text, const std::array<Unit, n>& units) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::optional<std::uint64_t> number = parse_number(text.substr(0, digits));
  if (!number) return std::nullopt;
  for (const Unit& unit : units)
    if (text.substr(digits) == unit.name) return checked_multiply(*number, unit.factor);
  return std::nullopt;
}

template <std::size_t n>
std::string format(std::uint64_t number, const std::array<Unit, n>& units) {
  const Unit* best = &units.front();
  for (const Unit& unit : units)
    if (number != 0 && number % unit.factor == 0 && unit.factor > best->factor) best = &unit;
  return fmt::format("{}{}", number / best->factor, best->name);
}

}  // namespace

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number);
  if (text.empty() || problem != std::errc() || stop != end) return std::nullopt;
  return number;
}

std::optional<Duration> parse_duration(std::string_view text) {
  const std::optional<std::uint64_t> count = parse(text, kDurationUnits);
  if (!count || *count > static_cast<std::uint64_t>(std::numeric_limits<Duration::rep>::max())) return std::nullopt;
  return Duration(static_cast<Duration::rep>(*count));
}

std::optional<std::uint64_t> parse_size(std::string_view text) { return parse(text, kSizeUnits); }

std::string format_duration(Duration duration) {
  const auto count = duration.count();
  const std::uint64_t magnitude = count < 0 ? 0 - static_cast<std::uint64_t>(count) : static_cast<std::uint64_t>(count);
  return fmt::format("{}{}", count < 0 ? "-" : "", format(magnitude, kDurationUnits));
}

std::string format_size(std::uint64_t bytes) { return format(bytes, kSizeUnits); }

}  // namespace nexar::base
