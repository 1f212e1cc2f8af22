// Who is in the world, and where.
#pragma once

#include <optional>
#include <vector>

#include "io/address.h"
#include "nexar/ids.h"
#include "types/core_set.h"
#include "types/node_id.h"

namespace nexar::cluster {

struct Member {
  NodeId node;
  HostId host;
  CoreSet cores;                       // that it may run on; empty where that is not known
  std::vector<io::Address> addresses;  // where it may be reached, best first

  friend bool operator==(const Member&, const Member&) = default;
};

// A numbered list of members; the place in it is the rank. All nodes of an epoch have the same.
struct View {
  Epoch epoch = 1;
  std::vector<Member> members;

  int size() const { return static_cast<int>(members.size()); }
  const Member& member(Rank rank) const { return members[static_cast<std::size_t>(rank)]; }
  std::optional<Rank> rank_of(const NodeId& node) const;

  friend bool operator==(const View&, const View&) = default;
};

// Where each rank of a view is.
class Places {
 public:
  explicit Places(const View& view);

  int hosts() const { return static_cast<int>(sizes_.size()); }
  int host_index(Rank rank) const { return at(rank).host; }        // hosts are numbered in the order of their lowest ranks
  int local_rank(Rank rank) const { return at(rank).local_rank; }  // among the ranks of its host, in their order
  int local_size(Rank rank) const { return sizes_[static_cast<std::size_t>(at(rank).host)]; }

 private:
  struct Place {
    int host;
    int local_rank;
  };
  const Place& at(Rank rank) const { return places_[static_cast<std::size_t>(rank)]; }

  std::vector<Place> places_;
  std::vector<int> sizes_;  // by host
};

}  // namespace nexar::cluster
