// What becomes of an algorithm's work when ranks share hosts: part of it stays inside, and the rest shares the hosts' lines.
//
// Without levels (hosts.h) all of these return the work as it is.
#pragma once

#include <algorithm>
#include <vector>

#include "plan/cost.h"
#include "plan/shape.h"

namespace nexar::plan {

// Of a ring or chain of all ranks in their order. `whole` of path_bytes are one transfer, at the speed of the slowest hop; the rest is a
// part for each hop.
Work around_hosts(const Shape& shape, Work work, double whole = 0);

// Of ranks that send the same to every other.
Work spread_over_hosts(const Shape& shape, Work work);

// Of rounds in which ranks have partners. The work's bytes and hops are counted anew, round by round.
class RoundsOnHosts {
 public:
  RoundsOnHosts(const Shape& shape, const Work& work) : shape_(shape), flat_(work), work_(work) {
    work_.hops = work_.bytes = work_.path_bytes = 0;
  }

  // `partner(rank)` is whom it sends `bytes` to, -1 when nobody.
  template <typename Partner>
  void add(double bytes, Partner partner) {
    if (!shape_.hosts.has_levels()) return;
    std::vector<double> leaving(static_cast<std::size_t>(shape_.hosts.count()), 0);
    for (Rank rank = 0; rank < shape_.size; ++rank) {
      const Rank to = partner(rank);
      if (to >= 0 && shape_.hosts.host_of(to) != shape_.hosts.host_of(rank))
        ++leaving[static_cast<std::size_t>(shape_.hosts.host_of(rank))];
    }
    count(bytes, *std::max_element(leaving.begin(), leaving.end()));
  }

  Work work() const { return shape_.hosts.has_levels() ? work_ : flat_; }

 private:
  void count(double bytes, double leaving);

  const Shape& shape_;
  Work flat_;
  Work work_;
};

}  // namespace nexar::plan
