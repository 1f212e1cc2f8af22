// What doctors tell each other before they measure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nexar/result.h"

namespace nexar::tool::doctor {

struct Introduction {
  std::uint64_t run = 0;  // that questions to its echo name
  std::uint16_t udp = 0;  // ports of its echo
  std::uint16_t tcp = 0;
  std::vector<std::string> addresses{};  // that it tells peers
  double rate = 0;                       // bytes a second that a core of it encrypts
  double clock = 0;                      // seconds since 1970, when this was sent
};

std::string to_text(const Introduction& introduction);

// kMismatch when it is none: the peer runs something else.
Result<Introduction> introduction_from(std::span<const std::byte> text);

}  // namespace nexar::tool::doctor
