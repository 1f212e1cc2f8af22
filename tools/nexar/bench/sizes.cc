#include "bench/sizes.h"

#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "base/units.h"

namespace nexar::bench {
namespace {

[[noreturn]] void refuse(const std::string& text) {
  throw std::runtime_error(fmt::format("--bytes: \"{}\" is no size such as 8, 64K or 1MiB, and no range such as 8-64M or 8-64M*4", text));
}

std::uint64_t size_in(const std::string& part, const std::string& text) {
  const std::optional<std::uint64_t> size = base::parse_size(part);
  if (!size || *size == 0) refuse(text);
  return *size;
}

}  // namespace

std::vector<std::uint64_t> parse_sizes(const std::vector<std::string>& texts) {
  std::vector<std::uint64_t> sizes;
  for (const std::string& text : texts) {
    const std::size_t dash = text.find('-');
    if (dash == std::string::npos) {
      sizes.push_back(size_in(text, text));
      continue;
    }
    const std::size_t star = text.find('*', dash);
    const std::uint64_t first = size_in(text.substr(0, dash), text);
    const std::uint64_t last = size_in(text.substr(dash + 1, star == std::string::npos ? star : star - dash - 1), text);
    const std::uint64_t factor = star == std::string::npos ? 2 : base::parse_number(text.substr(star + 1)).value_or(0);
    if (factor < 2 || first > last) refuse(text);
    for (std::uint64_t size = first; size <= last; size *= factor) {
      sizes.push_back(size);
      if (size > last / factor) break;
    }
  }
  return sizes;
}

}  // namespace nexar::bench
