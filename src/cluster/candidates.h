// Which of its addresses a node tells its peers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io/address.h"
#include "nexar/result.h"
#include "wire/limits.h"

namespace nexar::cluster {

inline constexpr std::size_t kCandidatesMax = wire::kAddressesMax;

struct CandidateRules {
  std::vector<std::string> interfaces{};  // JoinOptions::interfaces: names, addresses, networks; empty: all that are of use
  io::Address towards_seed{};             // the address that this host uses towards the seed; none when that is not known
  std::uint16_t port = 0;
  bool v4 = true;  // whether the node listens there
  bool v6 = true;
};

// The best first, at most kCandidatesMax, with the port. Without `interfaces`: the one used towards the seed, then those of all interfaces
// that are up; loopback only when the seed is there or there are no others. With them: in their order.
//
// Link-local addresses of IPv6 mean nothing on another host, which has other interfaces, and are never told; those of IPv4 only when they
// are asked for. kInvalidArgument names what cannot be understood, or fits nothing, and what there is.
Result<std::vector<io::Address>> choose_candidates(const std::vector<io::InterfaceAddress>& present, const CandidateRules& rules);

}  // namespace nexar::cluster
