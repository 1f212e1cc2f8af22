// Addresses and views between the wire and the rest.
#pragma once

#include <vector>

#include "cluster/view.h"
#include "io/address.h"
#include "wire/join_messages.h"

namespace nexar::cluster {

// Of an address that is one: the zone of a link-local address stays behind.
wire::NodeAddress to_wire(const io::Address& address);
io::Address from_wire(const wire::NodeAddress& address);

std::vector<wire::NodeAddress> to_wire(const std::vector<io::Address>& addresses);
std::vector<io::Address> from_wire(const std::vector<wire::NodeAddress>& addresses);

// The members of `view` from `first` on, as many as fit into one part.
wire::JoinView view_part(const View& view, std::size_t first);

// Adds the next part to `view`, which is empty before the first: whether that was the last. kRefused when it is not the next.
Result<bool> add_view_part(View& view, const wire::JoinView& part);

}  // namespace nexar::cluster
