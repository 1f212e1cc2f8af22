#include "cluster/node_address.h"

#include <algorithm>

#include "base/assert.h"

namespace nexar::cluster {

using Family = wire::NodeAddress::Family;

wire::NodeAddress to_wire(const io::Address& address) {
  NEXAR_ASSERT(static_cast<bool>(address), "an address that is told is one");
  wire::NodeAddress told;
  told.family = address.family() == io::Address::Family::kV4 ? Family::kV4 : Family::kV6;
  std::ranges::copy(address.ip(), told.ip.begin());
  told.port = address.port();
  return told;
}

io::Address from_wire(const wire::NodeAddress& address) {
  return io::Address::from_ip(base::ByteView(address.ip).first(address.family == Family::kV4 ? 4 : 16), address.port);
}

std::vector<wire::NodeAddress> to_wire(const std::vector<io::Address>& addresses) {
  std::vector<wire::NodeAddress> told;
  for (const io::Address& address : addresses) told.push_back(to_wire(address));
  return told;
}

std::vector<io::Address> from_wire(const std::vector<wire::NodeAddress>& addresses) {
  std::vector<io::Address> read;
  for (const wire::NodeAddress& address : addresses) read.push_back(from_wire(address));
  return read;
}

wire::JoinView view_part(const View& view, std::size_t first) {
  wire::JoinView part;
  part.epoch = view.epoch;
  part.size = static_cast<std::uint32_t>(view.members.size());
  part.first = static_cast<std::uint32_t>(first);
  const std::size_t last = std::min<std::size_t>(view.members.size(), first + wire::kViewPartMembersMax);
  for (std::size_t i = first; i < last; ++i)
    part.members.push_back({view.members[i].node, view.members[i].host, view.members[i].cores, to_wire(view.members[i].addresses)});
  return part;
}

Result<bool> add_view_part(View& view, const wire::JoinView& part) {
  const bool fits = part.first == view.members.size() && (part.first == 0 || part.epoch == view.epoch);
  if (!fits) return Error(ErrorCode::kRefused, "the parts of the view do not fit together");
  view.epoch = part.epoch;
  for (const wire::JoinView::Member& member : part.members)
    view.members.push_back({member.node, member.host, member.cores, from_wire(member.addresses)});
  return view.members.size() == part.size;
}

}  // namespace nexar::cluster
