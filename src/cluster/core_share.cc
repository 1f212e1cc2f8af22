#include "cluster/core_share.h"

namespace nexar::cluster {

CoreShare core_share(const View& view, Rank rank, const OwnCores& own) {
  const Member& self = view.member(rank);
  int here = 0;     // ranks of this host
  int sharing = 0;  // of those, on a core of this rank's
  bool known = true;
  for (const Member& member : view.members) {
    if (member.host != self.host) continue;
    ++here;
    known &= member.cores.is_known();
    if (member.cores.meets(self.cores)) ++sharing;
  }
  if (!known) return {here > own.usable, own.usable > 1};
  const int cores = self.cores.size();
  return {sharing > cores, cores > 1 || (sharing == 1 && own.online > 1)};
}

}  // namespace nexar::cluster
