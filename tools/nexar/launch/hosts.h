// Where ranks run: the hosts of a command line and who goes to which.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nexar/result.h"

namespace nexar::launch {

// More than one launcher can hold the pipes of, with the usual limit of descriptors at its highest.
inline constexpr int kWorldMax = 4096;

struct HostSlots {
  std::string name;
  int slots = 1;

  friend bool operator==(const HostSlots&, const HostSlots&) = default;
};

// `a,b:2`: a host has one slot unless it says otherwise. An IPv6 address with slots is written [fd00::1]:2. kInvalidArgument names the
// part.
Result<std::vector<HostSlots>> parse_hosts(std::string_view text);

// Where one rank is.
struct Place {
  std::string host;  // empty: here
  int local_rank = 0;
  int local_size = 1;

  friend bool operator==(const Place&, const Place&) = default;
};

// Ranks fill the hosts in order; without hosts all are here. `world` 0 means one for each slot. kInvalidArgument when there are fewer slots
// than ranks, or no ranks.
Result<std::vector<Place>> place_ranks(int world, const std::vector<HostSlots>& hosts);

// Cuts a command as a shell would: words between blanks, with quotes and backslashes, and nothing else. kInvalidArgument for a quote
// without its end, or no words.
Result<std::vector<std::string>> split_words(std::string_view text);

}  // namespace nexar::launch
