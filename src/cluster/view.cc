#include "cluster/view.h"

#include <algorithm>
#include <map>

namespace nexar::cluster {

std::optional<Rank> View::rank_of(const NodeId& node) const {
  const auto found = std::find_if(members.begin(), members.end(), [&](const Member& member) { return member.node == node; });
  if (found == members.end()) return std::nullopt;
  return static_cast<Rank>(found - members.begin());
}

Places::Places(const View& view) {
  std::map<HostId, int> known;
  places_.reserve(view.members.size());
  for (const Member& member : view.members) {
    const int host = known.try_emplace(member.host, hosts()).first->second;
    if (host == hosts()) sizes_.push_back(0);
    places_.push_back({host, sizes_[static_cast<std::size_t>(host)]++});
  }
}

}  // namespace nexar::cluster
