#include "plan/work_hosts.h"

#include <utility>

namespace nexar::plan {

Work around_hosts(const Shape& shape, Work work, double whole) {
  const Hosts& hosts = shape.hosts;
  if (!hosts.has_levels()) return work;
  std::vector<double> leaving(static_cast<std::size_t>(hosts.count()), 0);
  double all = 0;
  for (Rank rank = 0; rank < shape.size; ++rank) {
    if (hosts.host_of((rank + 1) % shape.size) == hosts.host_of(rank)) continue;
    ++leaving[static_cast<std::size_t>(hosts.host_of(rank))];
    ++all;
  }
  const double inside = 1 - all / static_cast<double>(shape.size);
  work.sharing = *std::max_element(leaving.begin(), leaving.end());
  work.local_bytes = work.bytes;
  work.local_hops = work.hops * inside;
  work.hops -= work.local_hops;
  work.local_path_bytes = (work.path_bytes - whole) * inside;
  work.path_bytes -= work.local_path_bytes;
  return work;
}

Work spread_over_hosts(const Shape& shape, Work work) {
  if (!shape.hosts.has_levels()) return work;
  work.sharing = 0;
  for (Rank host = 0; host < shape.hosts.count(); ++host) {
    const double here = shape.hosts.ranks_on(host);
    work.sharing = std::max(work.sharing, here * (shape.size - here) / (shape.size - 1.0));
  }
  return work;
}

void RoundsOnHosts::count(double bytes, double leaving) {
  if (leaving == 0) {
    work_.local_hops += 1;
    work_.local_bytes += bytes;
    work_.local_path_bytes += bytes;
    return;
  }
  work_.hops += 1;
  work_.bytes += bytes * leaving;
  work_.path_bytes += bytes * leaving;
}

}  // namespace nexar::plan
