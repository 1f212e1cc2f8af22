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

}  // namespace nexar::cluster
