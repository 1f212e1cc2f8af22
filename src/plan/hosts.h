// Which ranks of a group are on one host: what algorithms of two levels are made for.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nexar/ids.h"
#include "plan/cut.h"

namespace nexar::plan {

// A cheap handle; copies share one table. All ranks of a group have equal ones, because a view says where each rank is.
class Hosts {
 public:
  Hosts() = default;  // no levels

  // The host of each rank: any numbers, equal for ranks of one host. There are levels when there are several hosts and one of them has
  // several ranks; otherwise it is as if nothing had been said.
  explicit Hosts(std::span<const int> host_of_rank);

  bool has_levels() const { return table_ != nullptr; }

  // What follows is for groups with levels. Hosts are numbered in the order of their lowest ranks.
  Rank size() const { return static_cast<Rank>(table_->hosts.size()); }  // ranks
  Rank count() const { return static_cast<Rank>(table_->ranks.size()); }
  Rank host_of(Rank rank) const { return table_->hosts[static_cast<std::size_t>(rank)]; }
  Rank position(Rank rank) const { return table_->positions[static_cast<std::size_t>(rank)]; }            // among the ranks of its host
  std::span<const Rank> ranks(Rank host) const { return table_->ranks[static_cast<std::size_t>(host)]; }  // in their order
  Rank ranks_on(Rank host) const { return static_cast<Rank>(ranks(host).size()); }
  Rank fewest() const { return table_->fewest; }  // ranks on a host
  Rank most() const { return table_->most; }

  std::uint64_t hash() const { return has_levels() ? table_->hash : 0; }
  std::string to_text() const;  // `on 3 hosts of 1 to 2`; empty without levels

  friend bool operator==(const Hosts& a, const Hosts& b) {
    return a.table_ == b.table_ || (a.has_levels() && b.has_levels() && a.table_->hosts == b.table_->hosts);
  }

 private:
  struct Table {
    std::vector<Rank> hosts;               // by rank
    std::vector<Rank> positions;           // by rank
    std::vector<std::vector<Rank>> ranks;  // by host
    Rank fewest = 0;
    Rank most = 0;
    std::uint64_t hash = 0;
  };

  std::shared_ptr<const Table> table_;
};

// A buffer that every host cuts into one chunk for each of its ranks: the pieces between all these cuts. Of each piece, one rank of every
// host looks after it.
//
//   a host of 2    |     rank 0     |     rank 1     |
//   a host of 3    |  rank 2  |  rank 3  |  rank 4   |
//   strips         |    0     |  1  | 2  |     3     |
class Strips {
 public:
  Strips(const Hosts& hosts, std::uint64_t count);

  std::span<const Extent> extents() const { return extents_; }  // none of them empty
  Rank owner(Rank host, const Extent& strip) const;

  // Owners on all hosts.
  std::vector<Rank> owners(const Extent& strip) const;

 private:
  Hosts hosts_;
  std::uint64_t count_;
  std::vector<Extent> extents_;
};

}  // namespace nexar::plan
