#include "plan/cost.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/hash.h"

namespace nexar::plan {

std::string LinkModel::to_text() const {
  return fmt::format(
      "latency {} us, bandwidth {} B/s, inside a host {} us, {} B/s, reduce {} B/s, copy {} B/s, message {} us, bulk {} us, eager {} B",
      latency_us, bandwidth, local_latency_us, local_bandwidth, reduce_rate, copy_rate, message_overhead_us, bulk_overhead_us, eager_limit);
}

std::uint64_t LinkModel::digest() const { return base::hash64(to_text()); }

double predict_us(const Work& work, const LinkModel& link) {
  constexpr double kMicro = 1e6;
  const bool bulk = work.message_bytes > static_cast<double>(link.eager_limit);
  const double path = work.hops * link.latency_us + work.local_hops * link.local_latency_us +
                      kMicro * (work.sharing * work.path_bytes / link.bandwidth + work.local_path_bytes / link.local_bandwidth +
                                work.path_reduced / link.reduce_rate);
  const double wire = kMicro * std::max(work.sharing * work.bytes / link.bandwidth, work.local_bytes / link.local_bandwidth);
  const double arithmetic = kMicro * work.reduced / link.reduce_rate;
  const double overhead = work.messages * (bulk ? link.bulk_overhead_us : link.message_overhead_us) + kMicro * work.copied / link.copy_rate;
  return std::max({path, wire, arithmetic}) + overhead;
}

}  // namespace nexar::plan
