// Looks at nodes, and at the seed, without joining.
//
//   Observed seed = std::move(observe(token, {{.addresses = io::resolve(host, port).value(), .view = true}}, patience).front()).value();
#pragma once

#include <optional>
#include <vector>

#include "base/time.h"
#include "cluster/token.h"
#include "cluster/view.h"
#include "io/address.h"
#include "nexar/result.h"
#include "types/node_id.h"
#include "wire/info_messages.h"

namespace nexar::cluster {

// Whom to look at.
struct Sight {
  std::vector<io::Address> addresses;  // all are tried at once, and the first that answers counts
  std::optional<NodeId> node = {};     // who must be there; nothing: whoever is
  bool view = false;                   // whether the world is wanted too
};

// What was seen there.
struct Observed {
  io::Address address;  // that answered
  wire::InfoAnswer answer;
  View view;  // without members unless it was wanted
  std::vector<wire::InfoPeer> peers;
};

// An answer for each, in their order. Blocks the calling thread, with a loop of its own, up to `patience` for every 32 of them. Errors:
// kRefused for a wrong token, another cluster or a node without a view; kTimeout when nobody answers.
std::vector<Result<Observed>> observe(const Token& token, const std::vector<Sight>& sights, base::Duration patience);

}  // namespace nexar::cluster
